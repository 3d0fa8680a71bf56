"""python -m benchmarks.hotkey.emitters SETTINGS: one client program with many sensors, each emitting its next
EA when the last one is registered. Closed loop: there is always as much under way as there are sensors."""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Mapping
from typing import Any

import utuple
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.windows import Window, rate_per_s
from utuple.client.space import Space
from utuple.errors import UTupleError
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

LIFETIME_S = 600.0


class Emitters:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._managers: list[str] = given["managers"]
        self._space: Space | None = None
        self._sensors: list[asyncio.Task[None]] = []
        self._subject = self._type = ""
        self._is_over = False
        self._done_s = array("d")
        """When each EA was registered."""
        self._refused = 0

    async def begin(self, question: Mapping[str, Any]) -> Answer:
        """As a new client, with this policy and so many sensors of this subject and type."""
        self._space = await utuple.connect(*self._managers, choice=question["choice"]).open()
        self._subject, self._type = question["subject"], question["type"]
        self._is_over = False
        return await self.grow(question)

    async def grow(self, question: Mapping[str, Any]) -> Answer:
        """So many sensors, from now on."""
        missing = range(len(self._sensors), question["sensors"])
        self._sensors += [asyncio.create_task(self._emit_on(number)) for number in missing]
        return {}

    async def rate(self, question: Mapping[str, Any]) -> Answer:
        """EAs registered a second, in this window."""
        return {"per_s": rate_per_s(self._done_s, Window(*question["window"]))}

    async def end(self, _: Mapping[str, Any]) -> Answer:
        """What is under way is waited for."""
        self._is_over = True
        await asyncio.gather(*self._sensors)
        self._sensors.clear()
        await self.close()
        return {"refused": self._refused}

    async def close(self) -> None:
        for sensor in self._sensors:
            sensor.cancel()
        space, self._space = self._space, None
        if space is not None:
            await space.close()

    async def _emit_on(self, number: int) -> None:
        assert self._space is not None
        while not self._is_over:
            try:
                await self._space.emit(
                    subject=self._subject,
                    type=self._type,
                    address=f"sensor-{number}",
                    data={},
                    lifetime_s=LIFETIME_S,
                )
            except UTupleError:
                self._refused += 1
            else:
                self._done_s.append(monotonic_s())


async def main(stop: asyncio.Event) -> None:
    emitters = Emitters(settings())
    handlers = {
        "begin": emitters.begin,
        "grow": emitters.grow,
        "rate": emitters.rate,
        "end": emitters.end,
    }
    try:
        await answer_questions(handlers, stop)
    finally:
        await emitters.close()


if __name__ == "__main__":
    sys.exit(run_program("emitters", main))
