"""The cluster of a placement study: keys, lines and what each server bears by the cost model. Pure.

Time passes in days. An EA goes to one member that is on and stays its lifetime; an EF goes to every member of
its key's line. So help, flips, splits and releases change loads as they do in the live system.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from load_monitor.planning.moves import FlipOn, HelpMemory, HelpProcessing, Move, Split, changed
from ops_sim.cost.model import CostModel
from ops_sim.placement.keys import Keys, between
from ops_sim.placement.scenario import (
    DAY_S,
    EAS_PER_DEVICE_DAY,
    EF_REGISTRATIONS_PER_S,
    EFS_PER_DEVICE,
    LIFETIME_DAYS,
    Scenario,
)
from ops_sim.placement.slots import Places, Rows
from ops_sim.placement.splitmix import Floats, unit
from ops_sim.placement.usage import Bearing, bearing, summed
from utuple.cluster.line import first_table

_LUCK = 7
_CHOICES = 3
"""How often clients look again between two plans; they do after every answer."""
_FIRST_CHOICES = 10


class World:
    def __init__(self, scenario: Scenario, cost: CostModel) -> None:
        self.scenario, self.cost = scenario, cost
        self.keys = Keys(scenario)
        self.day = 0
        self.names = [_name(number) for number in range(scenario.servers_first)]
        self._index = {name: at for at, name in enumerate(self.names)}
        self.places = Places(LIFETIME_DAYS)
        self.rows = Rows(first_table(self.names), self.places, self._index)
        self.copied_efs = 0.0
        self._splits = 0
        self._come: list[Floats] = []
        starts = [line.section.start for line in self.rows.lines]
        self._edges: NDArray[np.int64] = self.keys.edges(np.array(starts, np.uint64))
        self._starts = starts
        self._weigh()
        for _ in range(_FIRST_CHOICES):
            self._choose()
        self.bearing = self._bear()

    # ------------------------------------------------------------------------------------------------ time

    def begin(self, day: int) -> None:
        """A new day: more devices, new servers, other keys; what expires today is gone."""
        self.day = day
        self.keys.live(day)
        for number in range(len(self.names), self.scenario.servers_on(day)):
            self._index[_name(number)] = len(self.names)
            self.names.append(_name(number))
        self.places.stock[day % LIFETIME_DAYS] = 0.0
        self._come = []

    def look(self, number: int) -> None:
        """A moment of the day."""
        self.keys.look(number)
        self._weigh()

    def settle(self) -> None:
        """What the last moves did shows: clients have found their ways, and loads are measured."""
        for _ in range(_CHOICES):
            self._choose()
        self.bearing = self._bear()

    def note(self) -> None:
        """So much comes in at this moment of the day."""
        self._come.append(self.arriving())

    def end(self) -> None:
        """What came today is stored where it went."""
        sizes = {len(come) for come in self._come}
        width = max(sizes)
        padded = [np.pad(come, (0, width - len(come))) for come in self._come]
        today = np.mean(padded, axis=0) * self.places.used[:width]
        self.places.stock[self.day % LIFETIME_DAYS, :width] = self._eas_a_day * today

    # --------------------------------------------------------------------------------------------- moves

    def make(self, move: Move) -> None:
        row = bisect_right(self._starts, move.section.start) - 1
        line = self.rows.lines[row]
        if not isinstance(move, Split):
            if isinstance(move, HelpProcessing | HelpMemory | FlipOn):
                self.copied_efs += self.efs(row)
            self.rows.change(row, changed(move, line)[0])
            return
        first, last = int(self._edges[row]), int(self._edges[row + 1])
        key = self._split_key(row, first, last)
        kept, given = changed(move, line, key)
        middle = int(np.searchsorted(self.keys.hashes, np.uint64(key)))
        whole = self.keys.weights[first:last].sum()
        part = float(self.keys.weights[middle:last].sum() / whole) if whole > 0 else 0.5
        self.copied_efs += self.efs(row) * part
        self.rows.split(row, kept, given, part)
        self._starts.insert(row + 1, key)
        self._edges = np.insert(self._edges, row + 1, middle)
        self._weigh()

    def _split_key(self, row: int, first: int, last: int) -> int:
        section = self.rows.lines[row].section
        self._splits += 1
        luck = float(unit(self.scenario.seed, _LUCK, self._splits)[-1])
        key = self.keys.drawn(first, last, luck) if last > first else 0
        return key if section.start < key else (section.start + section.end) // 2

    # --------------------------------------------------------------------------------------------- loads

    def arriving(self) -> Floats:
        """Each slot's part of all EAs at this moment."""
        return self._by_number(self._now)[self.places.line] * self.places.part

    def efs(self, row: int) -> float:
        """EFs of a line."""
        return float(self._mean[row]) * self._efs

    def keys_in_rows(self) -> NDArray[np.int64]:
        return np.diff(self._edges)

    @property
    def eas_per_s(self) -> float:
        return self._eas_a_day / DAY_S

    @property
    def _eas_a_day(self) -> float:
        return self.scenario.devices_on(self.day) * EAS_PER_DEVICE_DAY

    @property
    def _efs(self) -> float:
        return self.scenario.devices_on(self.day) * EFS_PER_DEVICE

    def templates(self) -> Floats:
        """EFs each slot keeps."""
        places = self.places
        return self._by_number(self._mean)[places.line] * places.knows * self._efs

    def _bear(self) -> Bearing:
        places, servers = self.places, len(self.names)
        registered = self._by_number(self._mean)[places.line] * places.used
        return bearing(
            self.cost,
            summed(places.server, self.arriving() * self.eas_per_s, servers),
            summed(places.server, registered * EF_REGISTRATIONS_PER_S, servers),
            summed(places.server, places.held(), servers),
            summed(places.server, self.templates(), servers),
        )

    def _choose(self) -> None:
        self.places.choose(self._bear().processing, len(self.rows))

    def _by_number(self, masses: Floats) -> Floats:
        found = np.empty(len(masses))
        found[self._numbers] = masses
        return found

    def _weigh(self) -> None:
        """Sections, keys or the time of day have changed: what each line is of the whole, in the mean of the
        day and now."""
        self._numbers = np.array(self.rows.numbers, np.int64)
        self._mean = between(self.keys.mean, self._edges)
        self._now = between(self.keys.now, self._edges)


def _name(number: int) -> str:
    return f"s{number:05d}"
