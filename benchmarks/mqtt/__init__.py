"""The benchmark `mqtt`: one MQTT door beside mosquitto, the same clients and the same run."""
