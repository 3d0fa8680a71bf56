"""A bridge to a broker that people already have: messages of some names are carried in, others out, at least once.

It is a client of both sides, of the broker and of its own door, each with a session that is kept. A message is acknowledged where
it came from when the other side has acknowledged it; whatever breaks in between, it comes again. Both sides must speak
MQTT 5: each message that is carried bears the bridge's mark (a user property), and one that bears it already is not carried
again, so that nothing goes round in circles.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import Any

from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from utuple.doors.mqtt.codec import names
from utuple.doors.mqtt.config import BridgeConfig, Rule
from utuple.runtime.logs import Log
from utuple.security.credentials import private_context, read_credentials

_log = Log("utuple.doors.mqtt.bridge")

MARK = "utuple-bridge"
_KEPT_S = 7 * 86_400
"""How long each side keeps what the bridge has not taken."""
_UNDER_WAY = 200
"""Messages that are carried at once, each way."""
_KEEP_ALIVE_S = 30
_CARRIED = (
    "PayloadFormatIndicator",
    "MessageExpiryInterval",
    "ContentType",
    "ResponseTopic",
    "CorrelationData",
)


class Side:
    """One of the two: what is subscribed to here, and what is carried here and not yet acknowledged."""

    def __init__(
        self, client_id: str, rules: Sequence[Rule], carry: Callable[[Side, MQTTMessage], None]
    ) -> None:
        self.rules = rules
        self._carry = carry
        self._under_way: dict[int, Callable[[], None]] = {}
        self.client = Client(
            CallbackAPIVersion.VERSION2, client_id, protocol=MQTTv5, manual_ack=True
        )
        self.client.on_connect = self._connected
        self.client.on_disconnect = self._disconnected
        self.client.on_message = lambda _, __, message: self._carry(self, message)
        self.client.on_publish = self._acknowledged
        self.client.reconnect_delay_set(1, 10)

    def start(self, host: str, port: int) -> None:
        said = Properties(PacketTypes.CONNECT)
        said.SessionExpiryInterval = _KEPT_S
        said.ReceiveMaximum = _UNDER_WAY
        self.client.connect_async(
            host, port, keepalive=_KEEP_ALIVE_S, clean_start=False, properties=said
        )
        self.client.loop_start()

    def stop(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def _connected(self, client: Client, _: object, __: object, reason: Any, ___: object) -> None:
        if reason.is_failure:
            _log.warning("bridge refused", host=client.host, port=client.port, reason=reason)
            return
        _log.info("bridge connected", host=client.host, port=client.port)
        options = SubscribeOptions(qos=1, noLocal=True, retainAsPublished=True)
        if self.rules:
            client.subscribe([(rule.pattern, options) for rule in self.rules])

    def _disconnected(
        self, client: Client, _: object, __: object, reason: Any, ___: object
    ) -> None:
        _log.info("bridge disconnected", host=client.host, port=client.port, reason=reason)

    def publish(
        self, topic: str, message: MQTTMessage, said: Properties, done: Callable[[], None]
    ) -> None:
        """`done` is called when this side has it."""
        qos = min(message.qos, 1)
        sent = self.client.publish(topic, message.payload, qos, message.retain, said)
        if qos:
            self._under_way[sent.mid] = done
        else:
            done()

    def _acknowledged(self, _: Client, __: object, mid: int, reason: Any, ___: object) -> None:
        done = self._under_way.pop(mid, None)
        if reason is not None and reason.is_failure:
            _log.warning("bridge could not hand a message over", reason=reason)
        if done is not None:
            done()


class Bridge:
    def __init__(self, config: BridgeConfig, host: str, port: int) -> None:
        """`host` and `port` are the door's own."""
        self._config = config
        self._door = (host, port)
        name = f"{MARK}-{config.name}"
        self._inside = Side(name, config.outward, self._carry)
        self._outside = Side(name, config.inward, self._carry)

    def start(self) -> None:
        config, client = self._config, self._outside.client
        if config.user:
            client.username_pw_set(config.user, config.password)
        if config.tls:
            client.tls_set()
        if config.credentials:
            own = read_credentials(config.credentials)
            self._inside.client.tls_set_context(private_context(own, ssl.PROTOCOL_TLS_CLIENT))
        self._inside.start(*self._door)
        self._outside.start(config.host, config.port)

    def stop(self) -> None:
        for side in (self._outside, self._inside):
            side.stop()

    def _carry(self, origin: Side, message: MQTTMessage) -> None:
        """From one side to the other, in the thread of the first."""
        other = self._outside if origin is self._inside else self._inside

        def done() -> None:
            origin.client.ack(message.mid, message.qos)

        marks = list(getattr(message.properties, "UserProperty", ()))
        own = (MARK, self._config.name)
        rule = next((r for r in origin.rules if names.matches(r.pattern, message.topic)), None)
        if own in marks or rule is None:
            done()
            return
        said = Properties(PacketTypes.PUBLISH)
        for name in _CARRIED:
            if hasattr(message.properties, name):
                setattr(said, name, getattr(message.properties, name))
        said.UserProperty = [*marks, own]
        other.publish(rule.prefix + message.topic, message, said, done)
