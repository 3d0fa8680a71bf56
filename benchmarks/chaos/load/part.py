"""What each process of users is given, and what every one of them does alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import orjson

import utuple
from benchmarks.chaos.record import Recorder
from utuple.client.space import Space
from utuple.runtime.logs import Log

VERB_LIMIT_S = 15.0
"""Longer than most faults last: most verbs end well, some do not."""
RETRIES = 3
"""Of a verb whose outcome is unknown, before it is written down so."""
COME_AGAIN_S = 0.5

_log = Log("benchmarks.chaos.load")


@dataclass(frozen=True, slots=True)
class Part:
    """The one argument of a process of users, as JSON."""

    program: str
    life: int
    seed: int
    at: tuple[str, ...]
    """The assignment managers, as users reach them."""
    servers: int
    file: str
    rate_per_s: float

    @property
    def argument(self) -> str:
        return orjson.dumps(asdict(self)).decode()

    def dice(self, who: str) -> Random:
        """Others in each life: a sensor that starts again does not measure the same again."""
        return Random(f"{self.seed} {self.program} {who} {self.life}")

    def steady_dice(self, who: str) -> Random:
        """The same in each life: a reader that starts again asks for the same again."""
        return Random(f"{self.seed} {self.program} {who}")

    @property
    def first_number(self) -> int:
        """No other program and no other life has these numbers."""
        return (Random(self.program).getrandbits(20) << 40) + (self.life << 28)


def part_from(argument: str) -> Part:
    given = orjson.loads(argument)
    return Part(**{**given, "at": tuple(given["at"])})


@dataclass(slots=True)
class Stay:
    """How long a process goes on."""

    calm: asyncio.Event
    """Faults are over: whoever is away comes back, nobody leaves."""
    over: asyncio.Event

    async def away(self, for_s: float) -> None:
        """Cut short by calm, and by the end."""
        await _first_of((self.calm, self.over), for_s)

    async def rest(self, for_s: float) -> None:
        """Cut short by the end."""
        await _first_of((self.over,), for_s)


async def _first_of(events: tuple[asyncio.Event, ...], limit_s: float) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


class User:
    def __init__(self, part: Part, stay: Stay) -> None:
        self.part = part
        self.stay = stay
        self.recorder = Recorder(Path(part.file))
        self._number = part.first_number

    def next_number(self) -> int:
        self._number += 1
        return self._number

    async def opened(self, verb_limit_s: float = VERB_LIMIT_S) -> Space:
        """A space of its own, as soon as an assignment manager answers."""
        while True:
            with suppress(utuple.Unavailable):
                return await utuple.connect(*self.part.at, timeout_s=verb_limit_s).open()
            if self.stay.over.is_set():
                raise asyncio.CancelledError
            await asyncio.sleep(COME_AGAIN_S)


async def settled(
    space: Space, verb: Callable[[], Awaitable[object]], retries: int = RETRIES
) -> tuple[str, object]:
    """The outcome of a verb, by the checker's name for it, and what the verb gave."""
    try:
        return "OK", await verb()
    except utuple.NotRegistered:
        return "NOT", None
    except utuple.OutcomeUnknown as error:
        unknown = error
    for _ in range(retries):
        try:
            return "OK", await space.retry(unknown)
        except utuple.OutcomeUnknown as error:
            unknown = error
        except utuple.NotRegistered as error:
            _log.error("a retry said not registered", reason=error)
    return "UNKNOWN", None
