"""The queue of a reader whose visits, arrivals and work are known: when each event is delivered, under any drop policy. Pure.

The mechanisms of the model (`simulation`) draw their periods; here they are given, from a run or a recording, so that what a real
reader saw is compared with what the model says of the very same visits. Interrupted work goes on where it stopped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Visit(NamedTuple):
    """The reader is there from `began_s` on until `ended_s`."""

    began_s: float
    ended_s: float


Kept = Callable[[Sequence[int], int], Iterable[int]]
"""Of the events that arrived before a visit while the reader was away, in order, those that are kept; and the visit's number."""


def followed(
    visits: Sequence[Visit], arrivals_s: Sequence[float], works_s: Sequence[float], kept: Kept
) -> list[float | None]:
    """From arrival to the end of its work, of each event; None if it was dropped, or there was no visit for it."""
    response_s: list[float | None] = [None] * len(arrivals_s)
    queue: deque[tuple[int, float]] = deque()
    """Numbers, and the work that is left."""
    seen = 0
    for number, visit in enumerate(visits):
        here, gone = bisect_left(arrivals_s, visit.began_s), bisect_right(arrivals_s, visit.ended_s)
        queue.extend((event, works_s[event]) for event in kept(range(seen, here), number))
        queue.extend((event, works_s[event]) for event in range(here, gone))
        seen, now_s = gone, visit.began_s
        while queue:
            event, left_s = queue[0]
            now_s = max(now_s, arrivals_s[event])
            if now_s + left_s > visit.ended_s:
                queue[0] = event, left_s - max(0.0, visit.ended_s - now_s)
                break
            queue.popleft()
            now_s += left_s
            response_s[event] = now_s - arrivals_s[event]
    return response_s
