"""The tables of figures 4, 6 and 7 of paper 004, for any reader: the model beside the simulation, mechanism beside mechanism.

Pure, but for the dice, which follow from a seed: the same study gives the same tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ops_sim.dropping.simulation import Mechanism, Outcome, simulate
from utuple.cluster.on_off_queue import OnOffQueue, zeta_for_mean
from utuple.errors import InvalidInput

BATCHES = 20
_STUDENT_95 = 2.093
"""Of a mean of 20 batches."""
_TUNING_STEPS = 14
_LIMIT_MAX = 1e7
MECHANISMS: tuple[Mechanism, ...] = ("probabilistic", "expiry", "expiry_exponential", "buffer")


@dataclass(frozen=True)
class Point:
    """Figure 4: the mean response time for one ζ and arrival rate."""

    zeta: float
    arrival_per_s: float
    model_s: float
    simulated_s: float | None
    """None where the queue is not stable: nothing settles there."""
    interval_s: float | None
    """Half of the simulation's 95 % interval, by batch means."""


@dataclass(frozen=True)
class Comparison:
    """Figures 6 and 7: one mechanism, set such that the mean response time is the threshold."""

    mechanism: Mechanism
    arrival_per_s: float
    limit: float
    """ζ, the lifetime in seconds, or the places of the buffers."""
    mean_response_s: float
    success_share: float
    lost_while_on_share: float


def response_points(
    queue: OnOffQueue, zetas: Sequence[float], arrivals: Sequence[float], events: int, seed: int
) -> Iterator[Point]:
    for zeta in zetas:
        for arrival in arrivals:
            at = replace(queue, zeta=zeta, arrival_per_s=arrival)
            if not at.is_stable:
                yield Point(zeta, arrival, math.inf, None, None)
                continue
            mean_s, half_s = batch_means(simulate(at, events, np.random.default_rng(seed)))
            yield Point(zeta, arrival, at.mean_response_s, mean_s, half_s)


def batch_means(outcome: Outcome) -> tuple[float, float]:
    """The mean, and half of its 95 % interval: neighbours resemble each other, batches of them hardly."""
    means = [float(batch.mean()) for batch in np.array_split(outcome.response_s, BATCHES)]
    return float(np.mean(means)), float(_STUDENT_95 * np.std(means, ddof=1) / math.sqrt(BATCHES))


def comparisons(
    queue: OnOffQueue, arrivals: Sequence[float], threshold_s: float, events: int, seed: int
) -> Iterator[Comparison]:
    """Each mechanism is set to the same mean response time, as the paper does (its figure 5)."""
    for arrival in arrivals:
        for mechanism in MECHANISMS:
            yield compared(
                replace(queue, arrival_per_s=arrival), mechanism, threshold_s, events, seed
            )


def compared(
    queue: OnOffQueue, mechanism: Mechanism, threshold_s: float, events: int, seed: int
) -> Comparison:
    def run(limit: float) -> Outcome:
        return simulate(queue, events, np.random.default_rng(seed), mechanism, limit)

    if mechanism == "probabilistic":
        limit = zeta_for_mean(queue, threshold_s)
        outcome = simulate(replace(queue, zeta=limit), events, np.random.default_rng(seed))
    else:
        limit = _tuned(
            lambda limit: run(limit).mean_response_s <= threshold_s, mechanism == "buffer"
        )
        outcome = run(limit)
    return Comparison(
        mechanism,
        queue.arrival_per_s,
        limit,
        outcome.mean_response_s,
        outcome.success_share,
        outcome.lost_while_on_share,
    )


def _tuned(is_met: Callable[[float], bool], is_whole: bool) -> float:
    """The largest limit that meets the threshold; the same dice for all, so that more of it is never quicker."""
    low, high = 1.0, 2.0
    while is_met(high):
        low, high = high, 2 * high
        if high > _LIMIT_MAX:
            raise InvalidInput("threshold_s", high, "is met without dropping anything")
    if low == 1.0 and not is_whole:
        low = 0.0
    for _ in range(_TUNING_STEPS):
        middle = (low + high) / 2
        if is_whole:
            if high - low <= 1:
                break
            middle = (low + high) // 2
        low, high = (middle, high) if is_met(middle) else (low, middle)
    return low
