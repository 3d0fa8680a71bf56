"""Loads as the values a snapshot is made of, made anew only where a number has changed. Pure.

Between two plans of one moment few servers bear anything else than before; at ten thousand servers making the
values is most of what a round costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from load_monitor.planning.snapshot import MemberLoad, SectionLoad, ServerLoad
from ops_sim.placement.cluster import World
from ops_sim.placement.splitmix import Floats
from utuple.cluster.line import Line

Flags = NDArray[np.bool_]
_NOTHING_HELD = 0.5
"""Rows are numbers with fractions here: less than half an EA is none."""


class ServerLoads:
    def __init__(self, capacity_bytes: int) -> None:
        self.loads: list[ServerLoad] = []
        self._capacity_bytes = capacity_bytes
        self._columns: tuple[NDArray[Any], ...] = ()

    def update(self, names: Sequence[str], columns: tuple[Floats, Floats, Flags, Flags]) -> None:
        """Processing, memory, and whether each has been too high for long enough."""
        known = len(self.loads)
        changed = _changed(self._columns, columns, known)
        self.loads += [ServerLoad(name) for name in names[known:]]
        values = (column[changed].tolist() for column in columns)
        for at, load, size, busy, full in zip(changed.tolist(), *values, strict=True):
            self.loads[at] = ServerLoad(
                names[at], load, size, self._capacity_bytes, 0.0, busy, full, load
            )
        self._columns = columns


class SectionLoads:
    def __init__(self) -> None:
        self.loads: list[SectionLoad] = []
        self._columns: tuple[NDArray[Any], ...] = ()
        self._lines: list[Line] = []
        self._members: list[MemberLoad] = []

    def update(self, world: World) -> None:
        places, rows = world.places, world.rows
        held = places.held()
        columns = (
            held.astype(np.int64),
            world.templates().astype(np.int64),
            world.arriving() * world.eas_per_s,
            held < _NOTHING_HELD,
        )
        known = len(self._members)
        changed = _changed(self._columns, columns, known)
        self._members += [MemberLoad()] * (len(held) - known)
        values = (column[changed].tolist() for column in columns)
        for at, *said in zip(changed.tolist(), *values, strict=True):
            self._members[at] = MemberLoad(*said)
        moved = np.zeros(len(rows), np.bool_)
        moved[places.line[changed]] = True
        stale = moved[np.array(rows.numbers)].tolist()
        many = (world.keys_in_rows() > 1).tolist()
        is_same_table = len(self._lines) == len(rows)
        members = self._members
        self.loads = [
            self.loads[row]
            if is_same_table and not stale[row] and self._lines[row] is line
            else SectionLoad(line, tuple([members[at] for at in slots]), many[row])
            for row, (line, slots) in enumerate(rows.in_order())
        ]
        self._columns, self._lines = columns, list(rows.lines)


def _changed(
    before: tuple[NDArray[Any], ...], now: tuple[NDArray[Any], ...], known: int
) -> NDArray[np.int64]:
    """Where any column differs, and all that is new."""
    differs = np.ones(len(now[0]), np.bool_)
    if known:
        differs[:known] = False
        for old, new in zip(before, now, strict=True):
            differs[:known] |= old != new[:known]
    return np.flatnonzero(differs)
