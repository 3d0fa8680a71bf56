"""A client of the MQTT door that says exactly what a test tells it to, packet by packet. Clients that nobody here wrote are
in test_mqtt_clients.py; this one is for what they would never do, and for looking at single packets."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from utuple.doors.mqtt.codec.packets import (
    V5,
    Ack,
    Connack,
    Connect,
    Disconnect,
    Filter,
    Kind,
    Packet,
    Property,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
)
from utuple.doors.mqtt.codec.reading import frame, read
from utuple.doors.mqtt.codec.writing import write

P = TypeVar("P")
LIMIT_S = 20.0


class Gone(Exception):
    """The door has closed the connection."""


class Wire:
    def __init__(self, port: int, version: int = V5, context: ssl.SSLContext | None = None) -> None:
        self.version = version
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname="127.0.0.1")
        self._buffer = bytearray()
        self._unseen: list[Packet] = []
        self.answers = True
        """Acknowledge what is published, as clients do."""
        self._last_id = 0

    def say(self, *packets: Packet) -> None:
        self.say_bytes(b"".join(write(packet, self.version) for packet in packets))

    def say_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def next(self, limit_s: float = LIMIT_S) -> Packet:
        """The next packet; `TimeoutError` if there is none, `Gone` if there will be none."""
        end_s = time.monotonic() + limit_s
        while True:
            found = frame(self._buffer, 0, 1 << 28)
            if found is not None and found[1] <= len(self._buffer):
                packet = read(
                    self._buffer[0], bytes(self._buffer[found[0] : found[1]]), self.version
                )
                del self._buffer[: found[1]]
                self._answer(packet)
                return packet
            self._socket.settimeout(max(0.001, end_s - time.monotonic()))
            try:
                data = self._socket.recv(1 << 16)
            except ConnectionError:
                raise Gone from None
            if not data:
                raise Gone
            self._buffer += data

    def _answer(self, packet: Packet) -> None:
        if not self.answers:
            return
        if isinstance(packet, Publish) and packet.qos:
            self.say(Ack(Kind.PUBACK if packet.qos == 1 else Kind.PUBREC, packet.packet_id))
        elif isinstance(packet, Ack) and packet.kind is Kind.PUBREL:
            self.say(Ack(Kind.PUBCOMP, packet.packet_id))
        elif isinstance(packet, Ack) and packet.kind is Kind.PUBREC and packet.reason < 0x80:
            self.say(Ack(Kind.PUBREL, packet.packet_id))

    def until(self, wanted: Callable[[Packet], bool], limit_s: float = LIMIT_S) -> Packet:
        """The first packet that is wanted; others are kept for who asks for them."""
        for place, packet in enumerate(self._unseen):
            if wanted(packet):
                return self._unseen.pop(place)
        end_s = time.monotonic() + limit_s
        while True:
            packet = self.next(max(0.001, end_s - time.monotonic()))
            if wanted(packet):
                return packet
            self._unseen.append(packet)

    def connect(self, client_id: str, **said: Any) -> Connack:
        properties = {
            Property[name.upper()]: value for name, value in said.pop("properties", {}).items()
        }
        self.say(Connect(client_id, self.version, properties=properties, **said))
        answer = self.until(lambda packet: isinstance(packet, Connack))
        assert isinstance(answer, Connack)
        return answer

    def subscribe(
        self, *patterns: str, qos: int = 2, properties: Any = None, **options: Any
    ) -> tuple[int, ...]:
        self._last_id += 1
        filters = tuple(Filter(pattern, qos, **options) for pattern in patterns)
        self.say(Subscribe(self._last_id, filters, properties or {}))
        return self._answered(Kind.SUBACK)

    def unsubscribe(self, *patterns: str) -> tuple[int, ...]:
        self._last_id += 1
        self.say(Unsubscribe(self._last_id, patterns))
        return self._answered(Kind.UNSUBACK)

    def _answered(self, kind: Kind) -> tuple[int, ...]:
        answer = self.until(
            lambda p: isinstance(p, Suback) and (p.kind, p.packet_id) == (kind, self._last_id)
        )
        assert isinstance(answer, Suback)
        return answer.reasons

    def publish(self, topic: str, payload: bytes = b"x", qos: int = 1, **changes: Any) -> int:
        """Registered when it returns, unless QoS is 0; then the reason."""
        packet_id = changes.pop("packet_id", 0)
        if qos and not packet_id:
            self._last_id += 1
            packet_id = self._last_id
        self.say(Publish(topic, payload, qos, packet_id=packet_id, **changes))
        if not qos:
            return 0
        last = (Kind.PUBACK,) if qos == 1 else (Kind.PUBREC, Kind.PUBCOMP)
        while True:
            answer = self.until(
                lambda p: isinstance(p, Ack) and p.packet_id == packet_id and p.kind in last
            )
            assert isinstance(answer, Ack)
            if answer.kind is last[-1] or answer.reason >= 0x80:
                return answer.reason

    def messages(self, count: int, limit_s: float = LIMIT_S) -> list[Publish]:
        return [self.message(limit_s) for _ in range(count)]

    def message(self, limit_s: float = LIMIT_S) -> Publish:
        packet = self.until(lambda packet: isinstance(packet, Publish), limit_s)
        assert isinstance(packet, Publish)
        return packet

    def more(self, limit_s: float = 0.3) -> list[Publish]:
        """Whatever else comes within this time: for saying that nothing does."""
        found = []
        try:
            while True:
                found.append(self.message(limit_s))
        except TimeoutError:
            return found

    def goodbye(self) -> int | None:
        """The reason with which the door ends the connection; None if it says none."""
        try:
            answer = self.until(lambda packet: isinstance(packet, Disconnect | Connack))
        except Gone:
            return None
        try:
            while True:
                self.next()
        except Gone:
            """As it should."""
        assert isinstance(answer, Disconnect | Connack)
        return answer.reason

    def disconnect(self, **properties: Any) -> None:
        said = {Property[name.upper()]: value for name, value in properties.items()}
        self.say(Disconnect(0, said))
        self.close()

    def close(self) -> None:
        self._socket.close()


@contextmanager
def connected(port: int, client_id: str, version: int = V5, **said: Any) -> Iterator[Wire]:
    wire = Wire(port, version)
    try:
        assert wire.connect(client_id, **said).reason == 0
        yield wire
    finally:
        wire.close()
