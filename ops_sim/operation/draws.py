"""The dice: one stream of numbers for each seed, world and use, whoever draws them and in whatever order.

Philox counts: its key is (seed, world) and its counter begins at the use, so that a world is the same in any
partition, on any machine, and whatever else is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ops_sim.operation.demand import Draws

Floats = NDArray[np.float64]


class Use(IntEnum):
    """What numbers are drawn for. Each use has a stream of its own."""

    GROWTH = 0
    NOISE = 1
    BURSTS = 2
    LEAD_TIMES = 3


def draw(use: Use, seed: int, worlds: Sequence[int], count: int) -> Floats:
    """The first so many numbers of each world, a row each: uniform ones for bursts, else standard normal ones."""
    bits = np.random.Philox(
        counter=np.array([0, 0, 0, use], dtype=np.uint64),
        key=np.array([seed, 0], dtype=np.uint64),
    )
    generator, state = np.random.Generator(bits), bits.state
    fill = generator.random if use is Use.BURSTS else generator.standard_normal
    found = np.empty((len(worlds), count))
    for row, world in zip(found, worlds, strict=True):
        # One generator for all worlds, set to where each one's numbers begin: making one takes ten times as long.
        state["state"]["key"][1] = world
        bits.state = state
        fill(out=row)
    return found


def draws_of(seed: int, world: int, days: int) -> Draws:
    """All of one world, as plain numbers."""
    noise, bursts, lead_times = (
        draw(use, seed, [world], days)[0].tolist()
        for use in (Use.NOISE, Use.BURSTS, Use.LEAD_TIMES)
    )
    growth = float(draw(Use.GROWTH, seed, [world], 1)[0, 0])
    return Draws(growth, noise, bursts, lead_times)
