"""What every verb works with, put together once for a space."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from utuple.client.config import Config
from utuple.client.receiving.sessions import Sessions
from utuple.client.routing.every_member import FanOut
from utuple.client.routing.lines import Lines
from utuple.client.routing.registrar import Registrar
from utuple.client.routing.retrier import Retrier
from utuple.client.routing.retry import Tries
from utuple.client.sending.batcher import Batcher
from utuple.client.transport import OwnLoop, Transport
from utuple.model.identity import uuid7
from utuple.model.utuple import UTuple

T = TypeVar("T")

_ID_BITS = 74


class CountingIds:
    """The random part of ids, such that those of one program count up, also within a millisecond: sorted by id, its events are in
    the order in which it emitted them, unless its clock was set back in between."""

    def __init__(self) -> None:
        self._ms = 0
        self._next = 0

    def after(self, now_us: int, count: int, random: int) -> int:
        """For so many ids; `random` has 74 bits, the highest of the last 62 is left as room to count."""
        first, ms = random & ~(1 << 61), now_us // 1_000
        if ms == self._ms:
            first = max(first, self._next)
        self._ms, self._next = ms, first + count
        return first


@dataclass(frozen=True, slots=True)
class Parts:
    config: Config
    transport: Transport
    dice: random.Random
    now_us: Callable[[], int]
    lines: Lines
    retrier: Retrier
    batcher: Batcher
    registrar: Registrar
    sessions: Sessions
    own_loop: OwnLoop
    owner: str
    """Whose readers are, on a secured cluster; else nobody's."""
    ids: CountingIds = field(default_factory=CountingIds)
    """Of events."""

    def new_id(self) -> bytes:
        return uuid7(self.now_us(), self.random_bits())

    def random_bits(self) -> int:
        """As many as a UUIDv7 takes."""
        return self.dice.getrandbits(_ID_BITS)

    def tries(self, *, retry: bool = False) -> Tries:
        """A call begins now."""
        self.own_loop.check()
        return Tries(asyncio.get_running_loop().time() + self.config.timeout_s, retry=retry)

    def fan_out(self, half: UTuple, *, registers: bool = True) -> FanOut[T]:
        """This EF or CA is to go to every member that it must reach."""
        silence_s = self.config.most_wait_s
        return FanOut(half, self.lines, self.retrier, silence_s, registers=registers)

    async def close(self) -> None:
        await self.batcher.close()
        await self.sessions.close()
        await self.lines.close()
        await self.transport.close()


def put_together(
    managers: Sequence[str],
    config: Config,
    transport: Transport,
    dice: random.Random,
    now_us: Callable[[], int],
    owner: str = "",
) -> Parts:
    lines = Lines(transport, managers, config)
    own_loop = OwnLoop()
    sessions = Sessions(transport, lines, dice, config, now_us, own_loop)
    batcher = Batcher(transport, lines, config)
    retrier = Retrier(lines, dice, config)
    return Parts(
        config=config,
        transport=transport,
        dice=dice,
        now_us=now_us,
        lines=lines,
        retrier=retrier,
        batcher=batcher,
        registrar=Registrar(lines, batcher, retrier, dice, config),
        sessions=sessions,
        own_loop=own_loop,
        owner=owner,
    )
