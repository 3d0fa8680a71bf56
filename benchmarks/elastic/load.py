"""The load of `utuple bench elastic`: events of some families at a rate that changes, and a watch of each family. What was answered
OK must come, once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import utuple
from benchmarks.child import Answer, answer_questions, settings
from utuple.errors import UTupleError
from utuple.runtime.clock import monotonic_s

_FAMILIES = 16
_TICK_S = 0.02
_WAITING_MOST = 4_000
"""Events on their way: an overloaded cluster is not asked for more."""
_ARRIVE_LIMIT_S = 60.0
_LOOK_S = 0.1


class Load:
    def __init__(self, managers: list[str]) -> None:
        self.space = utuple.connect(*managers)
        self.rate_per_s = 0.0
        self.sent: set[str] = set()
        """Answered OK."""
        self.failed = 0
        self.came: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0

    async def open(self, question: Any) -> Answer:
        for family in range(_FAMILIES):
            watch = await self.space.watch(subject="elastic", type=f"f{family}", since=None).open()
            self._start(self._take(watch))
        self._start(self._emit())
        return {}

    async def rate(self, question: Any) -> Answer:
        self.rate_per_s = float(question["per_s"])
        return {}

    async def end(self, question: Any) -> Answer:
        self.rate_per_s = 0.0
        give_up_s = monotonic_s() + _ARRIVE_LIMIT_S
        while monotonic_s() < give_up_s:
            if self._is_idle and self.sent <= self.came.keys():
                break
            await asyncio.sleep(_LOOK_S)
        return {
            "sent": len(self.sent),
            "failed": self.failed,
            "missed": len(self.sent - self.came.keys()),
            "repeated": sum(count - 1 for count in self.came.values()),
        }

    @property
    def _is_idle(self) -> bool:
        return len(self._tasks) <= _FAMILIES + 1

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _emit(self) -> None:
        due = 0.0
        while True:
            due = min(due + self.rate_per_s * _TICK_S, self.rate_per_s)
            while due >= 1 and len(self._tasks) < _WAITING_MOST:
                due -= 1
                self._number += 1
                self._start(self._one(self._number))
            await asyncio.sleep(_TICK_S)

    async def _one(self, number: int) -> None:
        family, name = f"f{number % _FAMILIES}", f"e{number}"
        try:
            await self.space.emit(
                subject="elastic", type=family, address=name, data={}, lifetime_s=120
            )
            self.sent.add(name)
        except UTupleError:
            self.failed += 1

    async def _take(self, watch: Any) -> None:
        async for event in watch:
            self.came[event.address] += 1


async def main() -> None:
    load = Load(settings()["managers"])
    handlers = {"open": load.open, "rate": load.rate, "end": load.end}
    await answer_questions(handlers, asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main())
