"""The dice: one stream of numbers for each seed, world and use, whoever draws them and in whatever order.

Philox counts: its key is (seed, world) and its counter begins at the use, so that a world is the same in any
partition, on any machine, and whatever else is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ops_sim.demand import Draws

_GROWTH, _NOISE, _BURSTS, _LEAD_TIMES = range(4)
Floats = NDArray[np.float64]


def _stream(seed: int, world: int, use: int) -> np.random.Generator:
    counter = np.array([0, 0, 0, use], dtype=np.uint64)
    key = np.array([seed, world], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(counter=counter, key=key))


def growth_draws(seed: int, worlds: Sequence[int]) -> Floats:
    return np.array([_stream(seed, world, _GROWTH).standard_normal() for world in worlds])


def noise_draws(seed: int, worlds: Sequence[int], days: int) -> Floats:
    return _normal(seed, worlds, days, _NOISE)


def lead_time_draws(seed: int, worlds: Sequence[int], days: int) -> Floats:
    return _normal(seed, worlds, days, _LEAD_TIMES)


def burst_draws(seed: int, worlds: Sequence[int], days: int) -> Floats:
    found = np.empty((len(worlds), days))
    for row, world in zip(found, worlds, strict=True):
        _stream(seed, world, _BURSTS).random(out=row)
    return found


def _normal(seed: int, worlds: Sequence[int], days: int, use: int) -> Floats:
    """One row a world."""
    found = np.empty((len(worlds), days))
    for row, world in zip(found, worlds, strict=True):
        _stream(seed, world, use).standard_normal(out=row)
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
