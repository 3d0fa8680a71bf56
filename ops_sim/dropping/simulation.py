"""What becomes of each event under a dropping mechanism (paper 004, section IV-B): event by event. Pure; the dice are given.

Time while the reader is away stands still for its queue, so an event's delivery is found on the clock of ON time: it
begins when the one before has ended, takes an exponential time, and is put back into real time at the end.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from utuple.cluster.on_off_queue import OnOffQueue

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Mechanism = Literal["probabilistic", "expiry", "expiry_exponential", "buffer"]


@dataclass(frozen=True)
class Outcome:
    """What one run came to."""

    response_s: Floats
    """From arrival to delivery, of each event that was delivered, in order of arrival."""
    delivered: Bools
    """Of every event: was it delivered?"""
    arrived_on: Bools
    """Of every event: was the reader there when it reached its queue?"""

    @property
    def mean_response_s(self) -> float:
        return float(self.response_s.mean())

    @property
    def success_share(self) -> float:
        return float(self.delivered.mean())

    @property
    def lost_while_on_share(self) -> float:
        """Of what arrived while the reader was there, the share that was dropped (figure 7)."""
        return float((~self.delivered & self.arrived_on).sum() / max(1, self.arrived_on.sum()))


class _Presence:
    """When the reader is there, and how much ON time has passed at any instant."""

    def __init__(self, queue: OnOffQueue, until_s: float, dice: np.random.Generator) -> None:
        turns = int(until_s / (queue.on_s + queue.off_s) * 1.2) + 200
        on, off = dice.exponential(queue.on_s, turns), dice.exponential(queue.off_s, turns)
        while float((on + off).sum()) < until_s:
            on = np.append(on, dice.exponential(queue.on_s, turns))
            off = np.append(off, dice.exponential(queue.off_s, turns))
        self._on, self._ends = on, np.cumsum(on + off)
        self._starts = np.concatenate([[0.0], self._ends[:-1]])
        self._passed = np.concatenate([[0.0], np.cumsum(on)])

    def is_on(self, at_s: Floats) -> Bools:
        turn = np.searchsorted(self._ends, at_s, side="right")
        return np.asarray(at_s - self._starts[turn] < self._on[turn])

    def on_time(self, at_s: Floats) -> Floats:
        turn = np.searchsorted(self._ends, at_s, side="right")
        return np.asarray(
            self._passed[turn] + np.minimum(at_s - self._starts[turn], self._on[turn])
        )

    def real_time(self, on_s: Floats) -> Floats:
        turn = np.searchsorted(self._passed, on_s, side="right") - 1
        return np.asarray(self._starts[turn] + (on_s - self._passed[turn]))


def simulate(
    queue: OnOffQueue,
    events: int,
    dice: np.random.Generator,
    mechanism: Mechanism = "probabilistic",
    limit: float = 0.0,
) -> Outcome:
    """`limit` is the lifetime in seconds of the expiry mechanisms, or the places of the buffers."""
    emitted = np.cumsum(dice.exponential(1 / queue.arrival_per_s, events))
    arrived, entered = _through_input(
        queue, emitted, dice, limit if mechanism == "buffer" else None
    )
    presence = _Presence(queue, 2 * float(arrived[-1]) + 100 * queue.off_s + limit, dice)
    is_on, ready = presence.is_on(arrived), presence.on_time(arrived)
    work = dice.exponential(1 / queue.service_per_s, events)
    if mechanism == "probabilistic":
        kept = is_on | (dice.random(events) < queue.zeta)
        ended = _served(ready[kept], work[kept])
    elif mechanism == "buffer":
        kept, ended = _buffered(ready, work, entered, int(limit))
    else:
        lives = dice.exponential(limit, events) if mechanism != "expiry" else np.full(events, limit)
        dies = emitted + lives
        last = np.where(dies > arrived, presence.on_time(np.maximum(dies, arrived)), -1.0)
        kept, ended = _expiring(ready, work, last)
    return Outcome(presence.real_time(ended) - emitted[kept], kept, is_on)


def _served(ready: Floats, work: Floats) -> Floats:
    """When each is done: the one before, or its own arrival, and its work. A maximum over sums, so without a loop."""
    total = np.cumsum(work)
    return np.asarray(total + np.maximum.accumulate(ready - (total - work)))


def _through_input(
    queue: OnOffQueue, emitted: Floats, dice: np.random.Generator, places: float | None
) -> tuple[Floats, Bools]:
    """When each leaves the input queue, and whether it found a place there."""
    everyone = np.ones(len(emitted), dtype=np.bool_)
    if queue.input_service_per_s is None:
        return emitted, everyone
    work = dice.exponential(1 / queue.input_service_per_s, len(emitted))
    if places is None:
        return _served(emitted, work), everyone
    entered, ended = _buffered(emitted, work, everyone, int(places))
    arrived = emitted.copy()
    arrived[entered] = ended
    return np.maximum.accumulate(arrived), entered


def _buffered(ready: Floats, work: Floats, offered: Bools, places: int) -> tuple[Bools, Floats]:
    kept, ended, inside, free = np.zeros(len(ready), dtype=np.bool_), [], deque[float](), 0.0
    for number, (at, takes, is_offered) in enumerate(
        zip(ready.tolist(), work.tolist(), offered.tolist(), strict=True)
    ):
        while inside and inside[0] <= at:
            inside.popleft()
        if is_offered and len(inside) < places:
            free = max(at, free) + takes
            inside.append(free)
            ended.append(free)
            kept[number] = True
    return kept, np.array(ended)


def _expiring(ready: Floats, work: Floats, last: Floats) -> tuple[Bools, Floats]:
    """An event leaves when its time is over, also out of the delivery it is in."""
    kept, ended, free = np.zeros(len(ready), dtype=np.bool_), [], 0.0
    for number, (at, takes, dies) in enumerate(
        zip(ready.tolist(), work.tolist(), last.tolist(), strict=True)
    ):
        begins = max(at, free)
        if begins >= dies:
            continue
        free = min(begins + takes, dies)
        if begins + takes <= dies:
            ended.append(free)
            kept[number] = True
    return kept, np.array(ended)
