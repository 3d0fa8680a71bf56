"""Messages at a fixed rate, and how long each was on its way. Times are seconds of the machine's one clock."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.child import Answer
from benchmarks.windows import share
from utuple.runtime.clock import monotonic_s

TICK_S = 0.001
LOOK_AGAIN_S = 0.01
GIVE_UP_S = 60.0
"""Without any message."""

T = TypeVar("T")


async def pace(
    ready: Sequence[T], rate_per_s: float, send: Callable[[T], Awaitable[None]]
) -> float:
    """All of them at a fixed rate, whether or not the other side keeps up; the rate that was reached."""
    began_s = monotonic_s()
    sent = 0
    while sent < len(ready):
        due = int((monotonic_s() - began_s) * rate_per_s)
        for one in ready[sent:due]:
            await send(one)
            sent += 1
        await asyncio.sleep(TICK_S)
    return sent / (monotonic_s() - began_s)


class Arrivals:
    """May be told in another thread."""

    def __init__(self) -> None:
        self._arrived_s = array("d")
        self._sent_s = array("d")

    def take(self, sent_s: float) -> None:
        self._arrived_s.append(monotonic_s())
        self._sent_s.append(sent_s)

    async def received(self, question: Mapping[str, Any]) -> Answer:
        """Waits for so many; when the last came, and how long they took, without the first ones."""
        count, skipped = question["count"], question["skipped"]
        seen, give_up_s = -1, monotonic_s() + GIVE_UP_S
        while len(self._arrived_s) < count and monotonic_s() < give_up_s:
            if len(self._arrived_s) > seen:
                seen, give_up_s = len(self._arrived_s), monotonic_s() + GIVE_UP_S
            await asyncio.sleep(LOOK_AGAIN_S)
        pairs = zip(self._sent_s[skipped:], self._arrived_s[skipped:], strict=True)
        delays_s = sorted(arrived_s - sent_s for sent_s, arrived_s in pairs)
        answer = {
            "missed": count - len(self._arrived_s),
            "last_s": self._arrived_s[-1] if self._arrived_s else 0.0,
            "p50_s": share(delays_s, 0.5),
            "p99_s": share(delays_s, 0.99),
            "p999_s": share(delays_s, 0.999),
        }
        del self._arrived_s[:], self._sent_s[:]
        return answer
