"""The dice: one stream of numbers for each seed, world and use, whoever draws them and in whatever order.

Philox counts: its key is (seed, world) and its counter begins at the use, so that a world is the same in any
partition, on any machine, and whatever else is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ops_sim.operation.demand import Draws

_GROWTH, _NOISE, _BURSTS, _LEAD_TIMES = range(4)
Floats = NDArray[np.float64]


class _Stream:
    """One generator for all worlds, turned to where each one's numbers begin: making one takes ten times as long."""

    def __init__(self, seed: int, use: int) -> None:
        counter = np.array([0, 0, 0, use], dtype=np.uint64)
        self._bits = np.random.Philox(counter=counter, key=np.array([seed, 0], dtype=np.uint64))
        self._generator = np.random.Generator(self._bits)
        self._state = self._bits.state

    def of(self, world: int) -> np.random.Generator:
        self._state["state"]["key"][1] = world
        self._bits.state = self._state
        return self._generator


def growth_draws(seed: int, worlds: Sequence[int]) -> Floats:
    return _normal(seed, worlds, 1, _GROWTH)[:, 0]


def noise_draws(seed: int, worlds: Sequence[int], days: int) -> Floats:
    return _normal(seed, worlds, days, _NOISE)


def lead_time_draws(seed: int, worlds: Sequence[int], orders: int) -> Floats:
    """The first so many orders: with more of them, these are the same."""
    return _normal(seed, worlds, orders, _LEAD_TIMES)


def burst_draws(seed: int, worlds: Sequence[int], days: int) -> Floats:
    stream, found = _Stream(seed, _BURSTS), np.empty((len(worlds), days))
    for row, world in zip(found, worlds, strict=True):
        stream.of(world).random(out=row)
    return found


def _normal(seed: int, worlds: Sequence[int], count: int, use: int) -> Floats:
    """One row a world."""
    stream, found = _Stream(seed, use), np.empty((len(worlds), count))
    for row, world in zip(found, worlds, strict=True):
        stream.of(world).standard_normal(out=row)
    return found


def draws_of(seed: int, world: int, days: int) -> Draws:
    """All of one world, as plain numbers."""
    one = [world]
    return Draws(
        growth=float(growth_draws(seed, one)[0]),
        noise=noise_draws(seed, one, days)[0].tolist(),
        bursts=burst_draws(seed, one, days)[0].tolist(),
        lead_times=lead_time_draws(seed, one, days)[0].tolist(),
    )
