"""The places of a table as columns: each server in each line, whether it is on, and what it holds. Pure.

Beside the lines themselves, so that loads are sums over arrays while moves go through the code that runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ops_sim.placement.splitmix import Floats
from utuple.cluster.line import Line

_ROOM = 1_024
_DAMPING = 0.5
_IDLE = 0.05
"""A load below this is as good as none: a client sees no difference between waits so short."""


class Places:
    """Slots; a slot is a server in a line and stays its own through every change of that line."""

    def __init__(self, cohorts: int) -> None:
        self.server: NDArray[np.int64] = np.zeros(_ROOM, np.int64)
        self.line: NDArray[np.int64] = np.zeros(_ROOM, np.int64)
        """By the line's own number, which it keeps when lines before it are split."""
        self.used: Floats = np.zeros(_ROOM)
        """1.0 for a slot in use. Floats, because they are factors below."""
        self.on: Floats = np.zeros(_ROOM)
        self.knows: Floats = np.zeros(_ROOM)
        """It keeps the section's EFs: whoever is on, and the home in any case (decision 10)."""
        self.part: Floats = np.zeros(_ROOM)
        """Of what comes in for the line, as clients choose."""
        self.stock: Floats = np.zeros((cohorts, _ROOM))
        """EAs held, by the day on which they expire."""
        self._free: list[int] = list(range(_ROOM - 1, -1, -1))

    def take(self, server: int, line: int) -> int:
        if not self._free:
            self._grow()
        slot = self._free.pop()
        self.server[slot], self.line[slot], self.used[slot] = server, line, 1.0
        return slot

    def give_back(self, slot: int) -> None:
        for column in (self.used, self.on, self.knows, self.part):
            column[slot] = 0.0
        self.stock[:, slot] = 0.0
        self._free.append(slot)

    def follow(self, slots: list[int], line: Line) -> None:
        """These are the slots of the line's members: their flags are as the line says. What comes in is
        first shared in equal parts."""
        on = len(line.accumulatable)
        for position, (slot, member) in enumerate(zip(slots, line.members, strict=True)):
            self.on[slot] = float(member.accumulatable)
            self.knows[slot] = float(member.accumulatable or position == 0)
            self.part[slot] = member.accumulatable / on

    def choose(self, load: Floats, lines: int) -> None:
        """Clients go where the wait is shortest, a little more with every answer they get: members of a
        line that are on come to bear the same load."""
        wanted = self.part * ((load[self.server] + _IDLE) ** -_DAMPING)
        total = np.bincount(self.line, wanted, lines)
        total[total <= 0.0] = 1.0
        self.part = wanted / total[self.line]

    def held(self) -> Floats:
        held: Floats = self.stock.sum(axis=0)
        return held

    def _grow(self) -> None:
        size = len(self.server)
        self.server = np.concatenate((self.server, np.zeros(size, np.int64)))
        self.line = np.concatenate((self.line, np.zeros(size, np.int64)))
        for name in ("used", "on", "knows", "part"):
            setattr(self, name, np.concatenate((getattr(self, name), np.zeros(size))))
        self.stock = np.concatenate((self.stock, np.zeros_like(self.stock)), axis=1)
        self._free = list(range(2 * size - 1, size - 1, -1))


class Rows:
    """The lines in the order of the hash space, with their numbers and their members' slots."""

    def __init__(self, lines: list[Line], places: Places, index: dict[str, int]) -> None:
        self._places, self._index = places, index
        self.lines: list[Line] = []
        self.numbers: list[int] = []
        self.slots: list[list[int]] = []
        for line in lines:
            self._insert(len(self.lines), line)

    def __len__(self) -> int:
        return len(self.lines)

    def change(self, row: int, line: Line) -> None:
        """The line's next epoch, on the same section or on the first part of it."""
        names = [member.name for member in self.lines[row].members]
        slots = dict(zip(names, self.slots[row], strict=True))
        kept = [
            slots.pop(member.name) if member.name in slots else self._slot(member.name, row)
            for member in line.members
        ]
        for slot in slots.values():
            self._places.give_back(slot)
        self._places.follow(kept, line)
        self.lines[row], self.slots[row] = line, kept

    def split(self, row: int, first: Line, second: Line, part: float) -> None:
        """What members hold lies in the second half to this part."""
        sources = dict(zip((m.name for m in self.lines[row].members), self.slots[row], strict=True))
        self._insert(row + 1, second)
        places = self._places
        for member, slot in zip(second.members, self.slots[row + 1], strict=True):
            source = sources.get(member.name)
            if source is not None:
                places.stock[:, slot] = places.stock[:, source] * part
                places.stock[:, source] *= 1.0 - part
        self.change(row, first)

    def in_order(self) -> Iterator[tuple[Line, list[int]]]:
        return zip(self.lines, self.slots, strict=True)

    def _insert(self, row: int, line: Line) -> None:
        number = len(self.lines)
        self.lines.insert(row, line)
        self.numbers.insert(row, number)
        self.slots.insert(row, [])
        self.slots[row] = [self._slot(member.name, row) for member in line.members]
        self._places.follow(self.slots[row], line)

    def _slot(self, name: str, row: int) -> int:
        return self._places.take(self._index[name], self.numbers[row])
