"""The simulated cluster of dynamic help: keys, lines, and how much of each server is used. Pure.

Time passes in days. An EA goes to one member that is on and stays its lifetime; an EF goes to every member of
its key's line. So help, flips, splits and releases change loads as they do in the live system.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from load_monitor.planning.policy import KEY
from ops_sim.cost.application import DAY_S, EA_LIFETIME_DAYS, A
from ops_sim.cost.model import CostModel
from ops_sim.placement.keys import Keys, between
from ops_sim.placement.scenario import Scenario
from ops_sim.placement.slots import LineTable, Slots
from ops_sim.placement.splitmix import Floats, unit
from ops_sim.placement.usage import Usage, sum_by_server, usage_of
from utuple.cluster.line import first_table
from utuple.cluster.move import Move, MoveKind, target

_SPLITS = 7
"""The stream of random numbers that choose where sections are split."""
_REBALANCES = 3
"""How often clients look again between two plans; they do after every answer."""
_FIRST_REBALANCES = 10


class Cluster:
    def __init__(self, scenario: Scenario, cost: CostModel, split_at: str = KEY) -> None:
        self.scenario, self.cost, self._split_at = scenario, cost, split_at
        self.keys = Keys(scenario)
        self.day = 0
        self.names: list[str] = []
        self._server_index: dict[str, int] = {}
        self.add_servers(scenario.servers_first)
        self.slots = Slots(EA_LIFETIME_DAYS)
        self.table = LineTable(first_table(self.names), self.slots, self._server_index)
        self.copied_efs = 0.0
        self._splits = 0
        self._arrived: list[Floats] = []
        self._starts = [line.section.start for line in self.table.lines]
        self._edges: NDArray[np.int64] = self.keys.edges(np.array(self._starts, np.uint64))
        self._weigh()
        self.settle(_FIRST_REBALANCES)

    def add_servers(self, total: int) -> None:
        """Adds servers until there are so many."""
        for number in range(len(self.names), total):
            name = f"s{number:05d}"
            self._server_index[name] = number
            self.names.append(name)

    # ------------------------------------------------------------------------------------------------ time

    def begin(self, day: int) -> None:
        """A new day: more devices, new servers, other keys; what expires today is gone."""
        self.day = day
        self.keys.live(day)
        self.add_servers(self.scenario.servers_on(day))
        self.slots.stock[day % EA_LIFETIME_DAYS] = 0.0
        self._arrived = []

    def look(self, number: int) -> None:
        """A moment of the day."""
        self.keys.look(number)
        self._weigh()

    def settle(self, rebalances: int = _REBALANCES) -> None:
        """What the last moves did shows: clients have found their ways, and usage is measured."""
        for _ in range(rebalances):
            self.slots.rebalance(self._usage().processing, len(self.table))
        self.usage = self._usage()

    def note_arrivals(self) -> None:
        """Remembers what comes in at this moment of the day."""
        self._arrived.append(self.arriving())

    def end(self) -> None:
        """What came today is stored where it went. Slots may have been added between two looks."""
        width = max(map(len, self._arrived))
        padded = [np.pad(arrived, (0, width - len(arrived))) for arrived in self._arrived]
        today = np.mean(padded, axis=0) * self.slots.used[:width]
        self.slots.stock[self.day % EA_LIFETIME_DAYS, :width] = (
            self.scenario.eas_on(self.day) * today
        )

    # --------------------------------------------------------------------------------------------- moves

    def make(self, move: Move) -> None:
        """Servers only come here, so that there never are more lines than servers: nothing is merged."""
        row = bisect_right(self._starts, move.section.start) - 1
        line = self.table.lines[row]
        efs = float(self._mean[row]) * self.scenario.efs_on(self.day)
        if move.kind is not MoveKind.SPLIT:
            if move.learner is not None:
                self.copied_efs += efs
            self.table.change(row, target(move, line)[0])
            return
        first, last = int(self._edges[row]), int(self._edges[row + 1])
        key = self._split_key(row, first, last)
        kept, given = target(replace(move, key=key), line)
        middle = int(np.searchsorted(self.keys.hashes, np.uint64(key)))
        whole = self.keys.weights[first:last].sum()
        part = float(self.keys.weights[middle:last].sum() / whole) if whole > 0 else 0.5
        self.copied_efs += efs * part
        self.table.split(row, kept, given, part)
        self._starts.insert(row + 1, key)
        self._edges = np.insert(self._edges, row + 1, middle)
        self._weigh()

    def _split_key(self, row: int, first: int, last: int) -> int:
        section = self.table.lines[row].section
        self._splits += 1
        luck = float(unit(self.scenario.seed, _SPLITS, self._splits)[-1])
        is_drawn = last > first and self._split_at == KEY
        key = self.keys.drawn(first, last, luck) if is_drawn else 0
        return key if section.start < key else (section.start + section.end) // 2

    # --------------------------------------------------------------------------------------------- loads

    def arriving(self) -> Floats:
        """Each slot's part of all EAs at this moment."""
        return self._by_number(self._now)[self.slots.line] * self.slots.part

    def eas_per_s(self) -> Floats:
        """EAs that come in at each slot."""
        return self.arriving() * (self.scenario.eas_on(self.day) / DAY_S)

    def efs(self) -> Floats:
        """EFs each slot keeps."""
        share = self._by_number(self._mean)[self.slots.line] * self.slots.has_efs
        return share * self.scenario.efs_on(self.day)

    def keys_in_lines(self) -> NDArray[np.int64]:
        return np.diff(self._edges)

    def _usage(self) -> Usage:
        slots = self.slots
        registered = self._by_number(self._mean)[slots.line] * slots.used * A.ef_per_s
        by_slot = (self.eas_per_s(), registered, slots.held(), self.efs())
        sums = (sum_by_server(slots.server, values, len(self.names)) for values in by_slot)
        return usage_of(self.cost, *sums)

    def _by_number(self, by_row: Floats) -> Floats:
        found = np.empty(len(by_row))
        found[self._numbers] = by_row
        return found

    def _weigh(self) -> None:
        """Sections, keys or the time of day have changed: what each line is of the whole, in the mean of the
        day and now."""
        self._numbers = np.array(self.table.numbers, np.int64)
        self._mean = between(self.keys.mean, self._edges)
        self._now = between(self.keys.now, self._edges)
