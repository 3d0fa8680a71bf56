"""Which of several members: the one with the shortest expected wait (BlueDove III-B). Pure.

Each answer of a server carries its queue and its rates; between answers the queue is extrapolated.
What this client has on its way to a server is added, because no answer has counted it yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from utuple.cluster.load import Load


@dataclass(frozen=True, slots=True)
class Seen:
    """A server's load, and when it said so."""

    load: Load
    at_s: float


def choose(
    names: Sequence[str],
    seen: Mapping[str, Seen],
    in_flight: Mapping[str, int],
    now_s: float,
    dice: float,
) -> str:
    """Unknown members come first, or they would stay unknown; ties go by `dice`, in [0, 1)."""
    if len(names) == 1:
        return names[0]
    waits = [_wait(name, seen.get(name), in_flight.get(name, 0), now_s) for name in names]
    least = min(waits)
    best = [name for name, wait in zip(names, waits, strict=True) if wait == least]
    return best[int(dice * len(best))]


def _wait(name: str, seen: Seen | None, in_flight: int, now_s: float) -> tuple[int, float]:
    if seen is None or seen.load.service_per_s <= 0:
        return (0, float(in_flight))
    own_s = in_flight / seen.load.service_per_s
    return (1, seen.load.expected_wait_s(max(0.0, now_s - seen.at_s)) + own_s)
