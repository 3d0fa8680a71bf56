"""From MQTT's names and payloads to uTuples, and back: the rules (`mapping`, mapping.toml), data (`payload`), and what an
event's id carries of MQTT (`identity`). Pure.
"""
