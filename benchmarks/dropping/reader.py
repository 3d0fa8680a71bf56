"""Many readers that come and go at random, each with a family of its own: ON and OFF periods and the work on each event are
exponential, as in paper 004. What each saw is told when all have ended."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import utuple
from benchmarks.child import Answer, answer_questions, settings
from utuple import Drop, DropPolicy


@dataclass
class Seen:
    """By one reader, after its warm-up."""

    waits_s: list[float] = field(default_factory=list)
    works_s: list[float] = field(default_factory=list)
    on_s: list[float] = field(default_factory=list)
    off_s: list[float] = field(default_factory=list)
    zetas: list[float] = field(default_factory=list)
    dropped: int = 0
    ids: set[int] = field(default_factory=set)
    repeated: int = 0


class Intermittent:
    def __init__(
        self, space: Any, number: int, policy: DropPolicy, given: Mapping[str, Any]
    ) -> None:
        self._space, self._given = space, given
        self._policy = policy
        self._dice = random.Random(f"{given['seed']}/{number}/{policy}")
        self._asked = {"subject": f"bench-{number}-{policy.kind}", "type": "visit"}
        self._began_s = 0.0
        self._emitted = 0
        self._left_s = 0.0
        """When the last visit ended: opening and closing are time in which nothing is taken, too."""
        self.all_seen, self.seen = Seen(), Seen()
        self._is_last = False
        """The visit in which it is given what is left."""

    @property
    def emitted(self) -> int:
        return self._emitted

    async def run(self, seconds: float) -> None:
        self._began_s = time.monotonic()
        emitting = asyncio.create_task(self._emit(seconds))
        while time.monotonic() - self._began_s < seconds:
            await self._be_here(self._dice.expovariate(1 / self._given["on_s"]))
            await asyncio.sleep(self._dice.expovariate(1 / self._given["off_s"]))
        await emitting
        self._is_last = True
        await self._be_here(3_600.0, until_empty=True)

    async def _emit(self, seconds: float) -> None:
        dice = random.Random(f"{self._given['seed']}/{self._asked['subject']}")
        due_s = self._began_s
        while due_s - self._began_s < seconds:
            due_s += dice.expovariate(self._given["arrival_per_s"])
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            self._emitted += 1
            data = {"n": self._emitted, "at_s": time.monotonic()}
            await self._space.emit(**self._asked, address="a", data=data)

    @property
    def _is_counted(self) -> bool:
        warm_up_s: float = self._given["warm_up_s"]
        return not self._is_last and time.monotonic() - self._began_s > warm_up_s

    def _told(self, drop: Drop) -> None:
        self.all_seen.dropped += drop.count
        if self._is_counted and drop.zeta is not None:
            self.seen.zetas.append(drop.zeta)

    async def _be_here(self, seconds: float, *, until_empty: bool = False) -> None:
        watch = self._space.watch(
            **self._asked, reader="intermittent", absent=self._policy, on_dropped=self._told
        )
        async with watch as events:
            began_s = time.monotonic()
            if self._left_s and self._is_counted:
                self.seen.off_s.append(began_s - self._left_s)
            until_s = began_s + seconds
            while (left_s := until_s - time.monotonic()) > 0:
                some = await events.take(1, timeout_s=min(left_s, 2.0) if until_empty else left_s)
                if not some and until_empty:
                    break
                for event in some:
                    await self._work(event, until_s)
            self._left_s = time.monotonic()
            if self._is_counted:
                self.seen.on_s.append(self._left_s - began_s)

    async def _work(self, event: Any, until_s: float) -> None:
        """What is interrupted by the end of the visit is not acknowledged, and comes again."""
        began_s = time.monotonic()
        work_s = self._dice.expovariate(self._given["service_per_s"])
        await asyncio.sleep(min(work_s, max(0.0, until_s - began_s)))
        now_s = time.monotonic()
        if began_s + work_s > until_s:
            return
        number = event.data["n"]
        self.all_seen.repeated += number in self.all_seen.ids
        self.all_seen.ids.add(number)
        await event.ack()
        if self._is_counted:
            self.seen.waits_s.append(now_s - event.data["at_s"])
            self.seen.works_s.append(now_s - began_s)


async def main() -> None:
    given = settings()
    async with utuple.connect(*given["managers"]) as space:

        async def run(question: Mapping[str, Any]) -> Answer:
            policy = DropPolicy(*question["policy"])
            crowd = [Intermittent(space, n, policy, given) for n in range(given["readers"])]
            await asyncio.gather(*(one.run(question["seconds"]) for one in crowd))
            return _answer(crowd)

        await answer_questions({"run": run}, asyncio.Event())


def _answer(crowd: list[Intermittent]) -> Answer:
    def mean(name: str) -> float:
        all_ = [value for one in crowd for value in getattr(one.seen, name)]
        return sum(all_) / len(all_) if all_ else 0.0

    matched = sum(one.emitted for one in crowd)
    delivered = sum(len(one.all_seen.ids) for one in crowd)
    dropped = sum(one.all_seen.dropped for one in crowd)
    return {
        "mean_response_s": mean("waits_s"),
        "work_s": mean("works_s"),
        "on_s": mean("on_s"),
        "off_s": mean("off_s"),
        "zeta": mean("zetas"),
        "counted": sum(len(one.seen.waits_s) for one in crowd),
        "matched": matched,
        "delivered": delivered,
        "declared": dropped,
        "repeated": sum(one.all_seen.repeated for one in crowd),
    }


if __name__ == "__main__":
    asyncio.run(main())
