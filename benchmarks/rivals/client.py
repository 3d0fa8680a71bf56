"""A rival's client, as its process uses it, and how to make one. Times are seconds of the machine's one clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

Handler = Callable[[bytes], None]
"""Given a message's payload; may be called in a thread of the client's."""


class Client(Protocol):
    async def open(self) -> None: ...

    async def publish(self, payloads: Iterable[bytes]) -> None:
        """As fast as it goes; all are acknowledged when this returns."""

    async def publish_one(self, payload: bytes) -> None:
        """It is on its way when this returns."""

    async def subscribe(self, handler: Handler) -> None:
        """From here on, each message once."""

    async def close(self) -> None: ...


def client_of(name: str, port: int) -> Client:
    """The packages are imported here: only what is measured has to be installed."""
    match name:
        case "mosquitto":
            from benchmarks.rivals.mqtt import MqttClient

            return MqttClient(port)
        case "mosquitto_qos0":
            from benchmarks.rivals.mqtt import MqttClient

            return MqttClient(port, qos=0)
        case "nats_core":
            from benchmarks.rivals.core_nats import CoreNatsClient

            return CoreNatsClient(port)
        case "redis":
            from benchmarks.rivals.streams import StreamsClient

            return StreamsClient(port)
        case _:
            from benchmarks.rivals.jetstream import JetStreamClient

            return JetStreamClient(port)
