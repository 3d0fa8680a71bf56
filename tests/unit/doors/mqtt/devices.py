"""A door before the twin cluster, and clients without sockets: everything in one loop, in virtual time."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tests.twins.cluster import MANAGER, TwinCluster
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.space import Space
from utuple.doors.mqtt.__main__ import read_mapping
from utuple.doors.mqtt.codec.packets import (
    V5,
    Ack,
    Connack,
    Connect,
    Filter,
    Kind,
    Packet,
    Property,
    Publish,
    Suback,
    Subscribe,
    Will,
)
from utuple.doors.mqtt.codec.reading import frame, read
from utuple.doors.mqtt.codec.writing import write
from utuple.doors.mqtt.config import Limits
from utuple.doors.mqtt.connection import Connection
from utuple.doors.mqtt.door import Door
from utuple.doors.spaces import Spaces
from utuple.doors.visitors import Visitor
from utuple.runtime.clock import now_us

FILTERS = ("truck/load/#", "bus/load/#", "tram/load/#")
LIMIT_S = 100.0


def space_of(cluster: TwinCluster, seed: int) -> Space:
    config = Config(timeout_s=10.0)
    return Space(put_together([MANAGER], config, cluster, random.Random(seed), now_us))


class OneSpace(Spaces):
    """The twin's, for whoever comes."""

    def __init__(self, space: Space) -> None:
        super().__init__([MANAGER], None)
        self._space = space

    async def take(self, visitor: Visitor | None) -> Space:
        return self._space

    def give_back(self, visitor: Visitor | None) -> None:
        """Whoever made it closes it."""


def door_of(space: Space) -> Door:
    return Door(space, OneSpace(space), None, read_mapping(""), Limits())


class Device:
    """A client and its socket in one."""

    def __init__(self, door: Door, name: str = "application", version: int = V5) -> None:
        self.name = name
        self._version = version
        self._buffer = bytearray()
        self._written = asyncio.Event()
        self.is_closed = False
        self.connection = Connection(door)
        self.connection.begin(self, "a test")

    def write(self, data: bytes) -> None:
        self._buffer += data
        self._written.set()

    def close(self) -> None:
        self.is_closed = True
        self._written.set()

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        """What it says is said at once."""

    def resume_reading(self) -> None:
        """As above."""

    def say(self, packet: Packet) -> None:
        self.connection.data_received(write(packet, self._version))

    async def next(self) -> Packet:
        while (found := frame(self._buffer, 0, 1 << 20)) is None:
            if self.is_closed:
                raise ConnectionResetError
            self._written.clear()
            await asyncio.wait_for(self._written.wait(), LIMIT_S)
        packet = read(self._buffer[0], bytes(self._buffer[found[0] : found[1]]), self._version)
        del self._buffer[: found[1]]
        if isinstance(packet, Publish) and packet.qos:
            self.say(Ack(Kind.PUBACK, packet.packet_id))
        return packet

    async def come_in(self, *, clean: bool = False, will: Will | None = None) -> Connack:
        """With a clean start its session is for its connection only."""
        said: dict[Property, Any] = {} if clean else {Property.SESSION_EXPIRY_INTERVAL: 3600}
        self.say(Connect(self.name, self._version, clean, will=will, properties=said))
        answer = await self.next()
        assert isinstance(answer, Connack)
        return answer

    async def subscribe(self) -> None:
        self.say(Subscribe(1, tuple(Filter(pattern, 1) for pattern in FILTERS)))
        answer = await self.next()
        assert isinstance(answer, Suback) and answer.reasons == (1, 1, 1)

    async def names(self, count: int) -> set[str]:
        """Of the next messages."""
        found = set()
        for _ in range(count):
            packet = await self.next()
            assert isinstance(packet, Publish)
            found.add(packet.topic)
        return found

    def lose(self) -> None:
        self.connection.connection_lost(None)
