"""python -m benchmarks.help.pulse SETTINGS: EAs at a steady rate, and the watchers that get every one of them.

Open loop: every `tick_s` the EAs that are due leave in one call, whatever became of those before. Each watcher
watches one address and gets an EA with every call, so that a silence of its is seen to that precision.
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from random import Random
from typing import Any

import utuple
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.windows import Window, longest_gap_s, share, waits_s
from utuple.client.receiving.watch import Watch
from utuple.client.space import Space
from utuple.errors import OutcomeUnknown, UTupleError
from utuple.runtime.clock import monotonic_s
from utuple.runtime.program import run_program

LIFETIME_S = 600.0
MOST_AT_ONCE = 4_000
"""EAs due while this process had no CPU leave together, but not more than this in one call."""
MOST_CALLS = 2_000
"""On their way: many seconds of them. Beyond it the rate falls, which is reported."""
LAST_DELIVERIES_S = 20.0
"""What has not come so long after the last EA was registered is missed."""
LOOK_AGAIN_S = 0.1
_NEVER = -1.0


class Pulse:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._managers: list[str] = given["managers"]
        self._about = {"subject": given["subject"], "type": given["type"]}
        self._rate_per_s: float = given["rate_per_s"]
        self._tick_s: float = given["tick_s"]
        self._field: str = given.get("field", "")
        self._length: float = given.get("range_length", 0.0)
        """EAs have a number in this field, spread evenly so far; 0: they have none."""
        self._dice = Random(0)
        self._arrivals = [array("d") for _ in range(given["watchers"])]
        """Of each watcher."""
        self._sent_s = array("d")
        """By the EA's number."""
        self._came_s = array("d")
        self._registered = bytearray()
        self._refused = 0
        self._repeated = 0
        self._stack = AsyncExitStack()
        self._space: Space | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._emitting: asyncio.Task[None] | None = None
        self._began_s = 0.0

    async def open(self, _: Mapping[str, Any]) -> Answer:
        """The watchers are there."""
        self._space = await self._stack.enter_async_context(utuple.connect(*self._managers))
        watches = [
            self._space.watch(**self._about, address=_address(number))
            for number in range(len(self._arrivals))
        ]
        await asyncio.gather(*(self._stack.enter_async_context(watch) for watch in watches))
        for number, watch in enumerate(watches):
            reading = asyncio.create_task(self._read(watch, self._arrivals[number]))
            self._stack.callback(reading.cancel)
        return {}

    async def begin(self, _: Mapping[str, Any]) -> Answer:
        self._began_s = monotonic_s()
        self._emitting = asyncio.create_task(self._emit_forever())
        return {}

    async def end(self, question: Mapping[str, Any]) -> Answer:
        """No more EAs; what was seen, in all and in each window."""
        assert self._emitting is not None
        self._emitting.cancel()
        took_s = monotonic_s() - self._began_s
        await asyncio.gather(*self._calls, return_exceptions=True)
        await self._until_all_came()
        return {
            "rate_per_s": len(self._sent_s) / took_s,
            "refused": self._refused,
            "missed": self._missed(),
            "repeated": self._repeated,
            "windows": [self._seen_in(Window(*window)) for window in question["windows"]],
        }

    async def close(self) -> None:
        if self._emitting is not None:
            self._emitting.cancel()
        await self._stack.aclose()

    async def _until_all_came(self) -> None:
        give_up_s = monotonic_s() + LAST_DELIVERIES_S
        while True:
            if not self._missed() or monotonic_s() > give_up_s:
                return
            await asyncio.sleep(LOOK_AGAIN_S)

    def _missed(self) -> int:
        pairs = zip(self._registered, self._came_s, strict=True)
        return sum(registered and came_s == _NEVER for registered, came_s in pairs)

    def _seen_in(self, window: Window) -> Answer:
        spans = zip(self._sent_s, self._came_s, strict=True)
        delays_s = waits_s((span for span in spans if span[1] != _NEVER), window)
        return {
            "longest_gap_s": max(longest_gap_s(arrivals, window) for arrivals in self._arrivals),
            "delay_median_s": share(delays_s, 0.5),
            "delay_p99_s": share(delays_s, 0.99),
            "delay_longest_s": share(delays_s, 1.0),
        }

    # --- EAs out -----------------------------------------------------------------------------------

    async def _emit_forever(self) -> None:
        while True:
            due = int((monotonic_s() - self._began_s) * self._rate_per_s) - len(self._sent_s)
            if due > 0 and len(self._calls) < MOST_CALLS:
                first = len(self._sent_s)
                self._note(min(due, MOST_AT_ONCE))
                call = asyncio.create_task(self._emit(range(first, len(self._sent_s))))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
            await asyncio.sleep(self._tick_s)

    def _note(self, count: int) -> None:
        self._sent_s.extend([monotonic_s()] * count)
        self._came_s.extend([_NEVER] * count)
        self._registered.extend(bytes(count))

    async def _emit(self, numbers: Sequence[int]) -> None:
        assert self._space is not None
        events = [
            {
                **self._about,
                "address": _address(number % len(self._arrivals)),
                "data": self._data(number),
                "lifetime_s": LIFETIME_S,
            }
            for number in numbers
        ]
        try:
            try:
                await self._space.emit_many(events)
            except OutcomeUnknown as error:
                await self._space.retry(error)
        except UTupleError:
            self._refused += len(numbers)
        else:
            for number in numbers:
                self._registered[number] = True

    def _data(self, number: int) -> dict[str, float]:
        if not self._length:
            return {"n": number}
        return {"n": number, self._field: self._dice.uniform(0.0, self._length)}

    # --- deliveries in -----------------------------------------------------------------------------

    async def _read(self, watch: Watch, arrivals: array[float]) -> None:
        async for event in watch:
            at_s = monotonic_s()
            arrivals.append(at_s)
            number = event.data["n"]
            self._repeated += self._came_s[number] != _NEVER
            self._came_s[number] = at_s


def _address(watcher: int) -> str:
    return f"watched-{watcher}"


async def main(stop: asyncio.Event) -> None:
    pulse = Pulse(settings())
    try:
        await answer_questions({"open": pulse.open, "begin": pulse.begin, "end": pulse.end}, stop)
    finally:
        await pulse.close()


if __name__ == "__main__":
    sys.exit(run_program("pulse", main))
