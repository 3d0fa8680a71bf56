"""The ON/OFF queue solved numerically: a quasi-birth-death process by logarithmic reduction. Pure.

Nothing of the closed form is used here: the blocks are written down from the transitions (paper 004, figure 3), G is
found by the general algorithm of Latouche and Ramaswami, and the probability of waiting longer than t by uniformization
of the chain that counts what is still before a match. Slow near saturation, and only a check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from utuple.cluster.on_off_queue import OnOffQueue

Matrix = NDArray[np.float64]
_REDUCTIONS = 60
"""Each doubles the number of levels that are looked at."""
_NOTHING = 1e-18
_TAIL = 1e-13
_LEVELS_MAX = 200_000


@dataclass(frozen=True)
class Stationary:
    """P_n = P_0 Rⁿ, for (OFF, ON)."""

    empty: Matrix
    rate: Matrix

    @property
    def mean_length(self) -> float:
        inverse = np.linalg.inv(np.eye(2) - self.rate)
        return float((self.empty @ self.rate @ inverse @ inverse).sum())

    def levels(self) -> Matrix:
        """One row for each n, until what is left is nothing."""
        rows, left = [self.empty], 1.0 - float(self.empty.sum())
        while left > _TAIL and len(rows) < _LEVELS_MAX:
            rows.append(rows[-1] @ self.rate)
            left -= float(rows[-1].sum())
        return np.array(rows)


def stationary(queue: OnOffQueue) -> Stationary:
    """Of a stable queue."""
    up, local, down, first = _blocks(queue)
    towards_up, towards_down = np.linalg.solve(-local, up), np.linalg.solve(-local, down)
    g, passed = towards_down.copy(), towards_up.copy()
    for _ in range(_REDUCTIONS):
        both = towards_up @ towards_down + towards_down @ towards_up
        towards_up = np.linalg.solve(np.eye(2) - both, towards_up @ towards_up)
        towards_down = np.linalg.solve(np.eye(2) - both, towards_down @ towards_down)
        g += passed @ towards_down
        passed = passed @ towards_up
        if np.abs(passed).max() < _NOTHING:
            break
    rate = up @ np.linalg.inv(-(local + up @ g))
    balance = first + rate @ down
    total = np.linalg.inv(np.eye(2) - rate).sum(axis=1)
    equations = np.column_stack([balance[:, 0], total])
    return Stationary(np.linalg.solve(equations.T, np.array([0.0, 1.0])), rate)


def mean_response_s(queue: OnOffQueue) -> float:
    """By Little's law, from what joins."""
    return stationary(queue).mean_length / queue.joining_per_s + queue.input_wait_s


def share_within(queue: OnOffQueue, seconds: float) -> float:
    """The share of deliveries that wait at most so long in the queue, by uniformization."""
    a, f, mu = 1 / queue.on_s, 1 / queue.off_s, queue.service_per_s
    joined = stationary(queue).levels() * np.array([queue.zeta, 1.0])
    joined /= joined.sum()
    off, on = joined[:, 0].copy(), joined[:, 1].copy()
    per_s = a + f + mu
    steps = int(per_s * seconds + 12 * math.sqrt(per_s * seconds) + 40)
    delivered, within, weight_log = 0.0, 0.0, -per_s * seconds
    for step in range(steps + 1):
        if step:
            weight_log += math.log(per_s * seconds / step)
            served = on * (mu / per_s)
            delivered += float(served[0])
            on, off = (
                on - served - on * (a / per_s) + off * (f / per_s) + np.append(served[1:], 0.0),
                off - off * (f / per_s) + on * (a / per_s),
            )
        within += math.exp(weight_log) * delivered
    return within


def _blocks(queue: OnOffQueue) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """One more, as many, one less, and as many when empty; states in the order (OFF, ON)."""
    a, f = 1 / queue.on_s, 1 / queue.off_s
    arrival, joining, mu = (
        queue.arrival_per_s,
        queue.arrival_per_s * queue.zeta,
        queue.service_per_s,
    )
    up = np.array([[joining, 0.0], [0.0, arrival]])
    down = np.array([[0.0, 0.0], [0.0, mu]])
    local = np.array([[-(joining + f), f], [a, -(arrival + mu + a)]])
    first = np.array([[-(joining + f), f], [a, -(arrival + a)]])
    return up, local, down, first
