"""The table of lines with its members as columns: who serves in which line, and what each holds there. Pure.

The lines themselves are kept beside the columns, so that loads are sums over arrays while moves go through the code
that runs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ops_sim.placement.splitmix import Floats
from utuple.cluster.line import Line

_FIRST_SIZE = 1_024
_DAMPING = 0.5
_IDLE = 0.05
"""A load below this is as good as none: a client sees no difference between waits so short."""


class Slots:
    """A slot is one server's place in one line. It stays the same through every change of that line."""

    def __init__(self, cohorts: int) -> None:
        self.server: NDArray[np.int64] = np.zeros(_FIRST_SIZE, np.int64)
        self.line: NDArray[np.int64] = np.zeros(_FIRST_SIZE, np.int64)
        """The number of the line, which it keeps when lines before it are split."""
        self.used: Floats = np.zeros(_FIRST_SIZE)
        """1.0 for a slot in use. These three are floats because they are used as factors."""
        self.on: Floats = np.zeros(_FIRST_SIZE)
        """The member accepts EAs."""
        self.has_efs: Floats = np.zeros(_FIRST_SIZE)
        """It keeps the section's EFs: whoever is on, and the home in any case (decision 28)."""
        self.part: Floats = np.zeros(_FIRST_SIZE)
        """The share of the line's EAs that clients send here."""
        self.stock: Floats = np.zeros((cohorts, _FIRST_SIZE))
        """EAs held, by the day on which they expire."""
        self._free: list[int] = list(range(_FIRST_SIZE - 1, -1, -1))

    def allocate(self, server: int, line: int) -> int:
        if not self._free:
            self._grow()
        slot = self._free.pop()
        self.server[slot], self.line[slot], self.used[slot] = server, line, 1.0
        return slot

    def free(self, slot: int) -> None:
        for column in (self.used, self.on, self.has_efs, self.part):
            column[slot] = 0.0
        self.stock[:, slot] = 0.0
        self._free.append(slot)

    def set_flags(self, slots: list[int], line: Line) -> None:
        """`slots` are those of the line's members, in their order. What comes in is first shared in equal parts."""
        on = len(line.accumulatable)
        for position, (slot, member) in enumerate(zip(slots, line.members, strict=True)):
            self.on[slot] = float(member.accumulatable)
            self.has_efs[slot] = float(member.accumulatable or position == 0)
            self.part[slot] = member.accumulatable / on

    def rebalance(self, load: Floats, lines: int) -> None:
        """Clients go where the wait is shortest, a little more with every answer they get: members of a line that are
        on come to bear the same load."""
        wanted = self.part * ((load[self.server] + _IDLE) ** -_DAMPING)
        total = np.bincount(self.line, wanted, lines)
        total[total <= 0.0] = 1.0
        self.part = wanted / total[self.line]

    def held(self) -> Floats:
        held: Floats = self.stock.sum(axis=0)
        return held

    def _grow(self) -> None:
        """Makes all columns twice as long."""
        size = len(self.server)
        for name in ("server", "line", "used", "on", "has_efs", "part", "stock"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate((column, np.zeros_like(column)), axis=-1))
        self._free = list(range(2 * size - 1, size - 1, -1))


class LineTable:
    """The lines in the order of the hash space, with their numbers and their members' slots."""

    def __init__(self, lines: list[Line], slots: Slots, server_index: dict[str, int]) -> None:
        self._slots, self._server_index = slots, server_index
        self.lines: list[Line] = []
        self.numbers: list[int] = []
        self.slots: list[list[int]] = []
        for line in lines:
            self._insert(len(self.lines), line)

    def __len__(self) -> int:
        return len(self.lines)

    def change(self, row: int, line: Line) -> None:
        """The line's next epoch, on the same section or on the first part of it."""
        before = self._slots_by_name(row)
        kept = [
            before.pop(member.name) if member.name in before else self._allocate(member.name, row)
            for member in line.members
        ]
        for slot in before.values():
            self._slots.free(slot)
        self._slots.set_flags(kept, line)
        self.lines[row], self.slots[row] = line, kept

    def split(self, row: int, first: Line, second: Line, part: float) -> None:
        """`part` of what the members hold lies in the second half, and goes there."""
        sources = self._slots_by_name(row)
        self._insert(row + 1, second)
        stock = self._slots.stock
        for member, slot in zip(second.members, self.slots[row + 1], strict=True):
            source = sources.get(member.name)
            if source is not None:
                stock[:, slot] = stock[:, source] * part
                stock[:, source] *= 1.0 - part
        self.change(row, first)

    def _slots_by_name(self, row: int) -> dict[str, int]:
        names = (member.name for member in self.lines[row].members)
        return dict(zip(names, self.slots[row], strict=True))

    def _insert(self, row: int, line: Line) -> None:
        number = len(self.lines)
        self.lines.insert(row, line)
        self.numbers.insert(row, number)
        self.slots.insert(row, [])
        self.slots[row] = [self._allocate(member.name, row) for member in line.members]
        self._slots.set_flags(self.slots[row], line)

    def _allocate(self, name: str, row: int) -> int:
        return self._slots.allocate(self._server_index[name], self.numbers[row])
