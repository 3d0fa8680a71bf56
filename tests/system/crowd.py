"""A crowd: many emitters, watchers that come and go, and a brute-force check of every delivery.

python -m tests.system.crowd --at 127.0.0.1:7400 --events 20000 --watchers 200
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import utuple
from utuple import Box, Circle, at_least, below, between, one_of, prefix

PATIENCE_S = 60.0
"""How long a watcher may wait for what it must get."""
FAMILIES = [("truck", "load"), ("truck", "speed"), ("bus", "load"), ("plug", "power")]
BASE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Event:
    family: tuple[str, str]
    address: str
    time: datetime
    position: tuple[float, float] | None
    data: dict[str, Any]


@dataclass
class Asked:
    """A template, in the SDK's words and as this file's own test."""

    family: tuple[str, str]
    arguments: dict[str, Any]
    tests: list[Callable[[Event], bool]]

    def meets(self, event: Event) -> bool:
        return event.family == self.family and all(test(event) for test in self.tests)


@dataclass
class Report:
    emitted: int = 0
    expected: int = 0
    delivered: int = 0
    missed: list[str] = field(default_factory=list)
    phantom: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"emitted={self.emitted} expected={self.expected} delivered={self.delivered} "
            f"missed={len(self.missed)} phantom={len(self.phantom)} repeated={len(self.repeated)}"
        )


def random_family(dice: random.Random, run: str) -> tuple[str, str]:
    subject, type_ = dice.choice(FAMILIES)
    return f"{subject}-{run}", type_


def random_event(dice: random.Random, number: int, run: str) -> Event:
    position = (dice.uniform(-90, 90), dice.uniform(-180, 180)) if dice.random() < 0.8 else None
    data: dict[str, Any] = {"n": number, "kg": dice.choice([dice.randrange(2000), dice.random()])}
    if dice.random() < 0.5:
        data["state"] = dice.choice(["on", "off", True, 1, None])
    return Event(
        random_family(dice, run),
        f"{dice.choice(['a', 'b', 'é'])}-{dice.randrange(40)}",
        BASE + timedelta(seconds=dice.randrange(3600)),
        position,
        data,
    )


def random_asked(dice: random.Random, run: str) -> Asked:
    asked = Asked(random_family(dice, run), {}, [])
    if dice.random() < 0.5:
        _ask_address(dice, asked)
    if dice.random() < 0.4:
        _ask_area(dice, asked)
    if dice.random() < 0.3:
        since = BASE + timedelta(seconds=dice.randrange(1800))
        until = since + timedelta(seconds=dice.randrange(1, 1800))
        asked.arguments |= {"since": since, "until": until}
        asked.tests.append(lambda event: since <= event.time < until)
    if dice.random() < 0.5:
        _ask_data(dice, asked)
    return asked


def _ask_address(dice: random.Random, asked: Asked) -> None:
    names = tuple(f"{dice.choice(['a', 'b', 'é'])}-{dice.randrange(40)}" for _ in range(3))
    low, high = sorted(("a-1", dice.choice(["b-3", "z", "é-2"])))
    choices: list[tuple[Any, Callable[[str], bool]]] = [
        (names[0], lambda a: a == names[0]),
        (one_of(*names), lambda a: a in names),
        (prefix("é-1"), lambda a: a.startswith("é-1")),
        (between(low, high), lambda a: low <= a < high),
    ]
    wanted, test = dice.choice(choices)
    asked.arguments["address"] = wanted
    asked.tests.append(lambda event: test(event.address))


def _ask_area(dice: random.Random, asked: Asked) -> None:
    lat, lon = dice.uniform(-80, 80), dice.uniform(-180, 180)
    if dice.random() < 0.5:
        box = Box(lat - 10, lon, lat + 10, dice.uniform(-180, 180))
        asked.arguments["area"] = box
        asked.tests.append(lambda event: _in_box(box, event.position))
        return
    circle = Circle(lat, lon, dice.uniform(1e5, 8e6))
    asked.arguments["area"] = circle
    asked.tests.append(lambda event: _in_circle(circle, event.position))


def _in_box(box: Box, position: tuple[float, float] | None) -> bool:
    if position is None or not box.south <= position[0] <= box.north:
        return False
    if box.west <= box.east:
        return box.west <= position[1] <= box.east
    return position[1] >= box.west or position[1] <= box.east


def _in_circle(circle: Circle, position: tuple[float, float] | None) -> bool:
    if position is None:
        return False
    one, other = (
        (math.cos(a) * math.cos(o), math.cos(a) * math.sin(o), math.sin(a))
        for a, o in (map(math.radians, p) for p in (position, (circle.lat, circle.lon)))
    )
    chord = math.dist(one, other)
    return 2 * 6_371_008.8 * math.asin(min(1.0, chord / 2)) <= circle.radius_m


def _ask_data(dice: random.Random, asked: Asked) -> None:
    low = dice.randrange(1500)
    choices: list[tuple[dict[str, Any], Callable[[dict[str, Any]], bool]]] = [
        ({"kg": at_least(low)}, lambda d: d["kg"] >= low),
        ({"kg": below(low + 1)}, lambda d: d["kg"] < low + 1),
        ({"state": True}, lambda d: d.get("state") is True),
        ({"state": 1.0}, lambda d: d.get("state") == 1 and d.get("state") is not True),
        ({"state": str}, lambda d: isinstance(d.get("state"), str)),
        ({"state": utuple.ABSENT}, lambda d: "state" not in d),
    ]
    wanted, test = dice.choice(choices)
    asked.arguments["where"] = wanted
    asked.tests.append(lambda event: test(event.data))


class Crowd:
    def __init__(self, at: str, events: int, watchers: int, clients: int, seed: int) -> None:
        self._at = at
        self._count = events
        self._watchers = watchers
        self._clients = clients
        self._dice = random.Random(seed)
        self._run = uuid4().hex[:8]
        """Subjects of its own, so that runs may share a cluster."""
        self._known: dict[int, Event] = {}
        """By number, from before its emit."""
        self._answered: set[int] = set()
        self._emitted = False
        self._moved = asyncio.Event()
        """Set, and replaced, whenever an event was answered or delivered."""
        self.report = Report()

    async def run(self, meanwhile: Awaitable[None] | None = None) -> Report:
        shares = [range(c, self._count, self._clients) for c in range(self._clients)]
        seeds = [self._dice.random() for _ in range(self._watchers)]
        emitters = [asyncio.create_task(self._emit(share)) for share in shares]
        watchers = [asyncio.create_task(self._watch(random.Random(seed))) for seed in seeds]
        if meanwhile is not None:
            await meanwhile
        await asyncio.gather(*emitters)
        self._emitted = True
        self._move()
        await asyncio.gather(*watchers)
        self.report.emitted = len(self._answered)
        return self.report

    async def _emit(self, share: range) -> None:
        dice = random.Random(share.start)
        async with utuple.connect(self._at, timeout_s=PATIENCE_S) as space:
            for number in share:
                event = self._known[number] = random_event(dice, number, self._run)
                await space.emit(
                    subject=event.family[0],
                    type=event.family[1],
                    address=event.address,
                    time=event.time,
                    position=event.position,
                    data=event.data,
                )
                self._answered.add(number)
                self._move()

    async def _watch(self, dice: random.Random) -> None:
        """Come at some point, stay until some point, and then wait only for what is due by then."""
        comes, goes = sorted((dice.random(), dice.random() * 1.5))
        await self.reached(comes)
        asked = random_asked(dice, self._run)
        got: Counter[int] = Counter()
        async with utuple.connect(self._at, timeout_s=PATIENCE_S) as space:
            subject, type_ = asked.family
            async with space.watch(subject=subject, type=type_, **asked.arguments) as events:
                taking = asyncio.create_task(self._take(events, got))
                await self.reached(goes)
                due = {n for n in self._answered if asked.meets(self._known[n])}
                await self._until(lambda: due <= got.keys())
                taking.cancel()
                await asyncio.gather(taking, return_exceptions=True)
        self._check(asked, due, got)

    async def _take(self, events: Any, got: Counter[int]) -> None:
        async for event in events:
            got[event.data["n"]] += 1
            self._move()

    async def reached(self, share: float) -> None:
        """Wait until this share of the events is answered."""
        while len(self._answered) < share * self._count and not self._emitted:
            await self._moved.wait()

    async def _until(self, done: Callable[[], bool]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while not done():
                    await self._moved.wait()

    def _move(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _check(self, asked: Asked, due: set[int], got: Counter[int]) -> None:
        report = self.report
        report.expected += len(due)
        report.delivered += sum(got.values())
        named = f"{asked.family} {asked.arguments}"
        report.missed += [f"{n} {self._known[n]} for {named}" for n in due - got.keys()]
        report.repeated += [f"{n} for {named}" for n, times in got.items() if times > 1]
        report.phantom += [
            f"{n} for {named}"
            for n in got
            if n not in self._known or not asked.meets(self._known[n])
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at", default="127.0.0.1:7400")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    crowd = Crowd(given.at, given.events, given.watchers, given.clients, given.seed)
    report = asyncio.run(crowd.run())
    sys.stdout.write(f"{report}\n")
    return int(bool(report.missed or report.phantom or report.repeated))


if __name__ == "__main__":
    sys.exit(main())
