"""The proposed method: the live planner over the simulated cluster. Loads in, moves made. Pure.

The snapshot is what the monitor's window would hold once loads have been steady for a while: averages have
arrived, and an alarm is raised above its threshold and cleared below the lower one (tests compare the two).
"""

from __future__ import annotations

from collections import Counter, deque

import numpy as np
from numpy.typing import NDArray

from load_monitor.planning.advice import AddServers
from load_monitor.planning.planner import Plan, plan
from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import (
    ClusterSnapshot,
    Done,
    MemberLoad,
    SectionLoad,
    ServerLoad,
)
from load_monitor.window import LOAD_MAX
from ops_sim.cost.model import CostModel
from ops_sim.placement.cluster import Cluster
from ops_sim.placement.scenario import Scenario
from ops_sim.placement.splitmix import Floats
from ops_sim.placement.usage import Usage

Flags = NDArray[np.bool_]
_NOTHING_HELD = 0.5
"""Stored EAs are numbers with fractions here: less than half an EA is none."""


def raised(was: Flags, load: Floats, start: float, stop: float) -> Flags:
    """The alarm of a load that is steady: load_monitor.window.Alarm after hold_s."""
    alarm: Flags = (load > start) | (was & (load >= stop))
    return alarm


class DynamicHelp:
    """The cluster, the monitor's alarms, and the moves it remembers."""

    def __init__(self, scenario: Scenario, cost: CostModel, policy: Policy) -> None:
        self.cluster, self._policy = Cluster(scenario, cost, policy.split_at), policy
        self._busy: Flags = np.zeros(0, np.bool_)
        self._full: Flags = np.zeros(0, np.bool_)
        self._recent: deque[Done] = deque()
        self._servers_wanted = 0
        self.step_s = policy.hold_s + policy.settle_s + 5 * policy.smoothing_s
        """The time between two plans, so long that each sees what the one before did."""

    @property
    def usage(self) -> Usage:
        return self.cluster.usage

    def begin(self, day: int) -> Counter[str]:
        self.cluster.begin(day)
        return Counter()

    def look(self, number: int) -> None:
        self.cluster.look(number)

    def run(self, now_s: float, limit: int) -> Counter[str]:
        """Plans until nothing moves, at most so many. Moves by kind."""
        made: Counter[str] = Counter()
        for number in range(limit):
            self.cluster.settle()
            at_s = now_s + number * self.step_s
            planned = self._plan(at_s)
            for move in planned.moves:
                self.cluster.make(move)
                self._recent.append(Done(move, at_s))
                made[move.kind.value] += 1
            if not planned.moves:
                break
        else:
            self.cluster.settle()
        self.cluster.note_arrivals()
        return made

    def end(self) -> dict[str, float]:
        """What only this method knows of the day."""
        cluster = self.cluster
        cluster.end()
        copied, cluster.copied_efs = cluster.copied_efs, 0.0
        return {
            "copied_efs": copied,
            "worst_share": self._worst_share(),
            "servers_wanted": self._servers_wanted,
        }

    def members(self) -> list[int]:
        """How many members each line has."""
        return [len(line.members) for line in self.cluster.table.lines]

    def _worst_share(self) -> float:
        """0: each EF at one server, the best condition. 1: each at every server, the worst (section 4)."""
        cluster = self.cluster
        servers = len(cluster.names)
        if servers < 2:
            return 0.0
        copies = cluster.efs().sum() / cluster.scenario.efs_on(cluster.day)
        return max(0.0, float(copies - 1.0) / (servers - 1))

    def _plan(self, now_s: float) -> Plan:
        while self._recent and self._recent[0].at_s <= now_s - self._policy.limit_window_s:
            self._recent.popleft()
        planned = plan(self.snapshot(now_s), self._policy)
        additions = (one.count for one in planned.advice if isinstance(one, AddServers))
        self._servers_wanted = max(additions, default=0)
        return planned

    def snapshot(self, now_s: float) -> ClusterSnapshot:
        return ClusterSnapshot(now_s, self._servers(), self._sections(), (), tuple(self._recent))

    def _servers(self) -> tuple[ServerLoad, ...]:
        policy, usage = self._policy, self.usage
        processing, memory = np.minimum(usage.processing, LOAD_MAX), usage.memory
        new = len(processing) - len(self._busy)
        busy, full = np.pad(self._busy, (0, new)), np.pad(self._full, (0, new))
        self._busy = raised(busy, processing, policy.processing_start, policy.processing_stop)
        self._full = raised(full, memory, policy.memory_start, policy.memory_stop)
        capacity = int(self.cluster.cost.memory_bytes)
        columns = (c.tolist() for c in (processing, memory, self._busy, self._full))
        return tuple(
            ServerLoad(name, load, size, capacity, 0.0, is_busy, is_full, load)
            for name, load, size, is_busy, is_full in zip(self.cluster.names, *columns, strict=True)
        )

    def _sections(self) -> tuple[SectionLoad, ...]:
        cluster = self.cluster
        held = cluster.slots.held()
        columns = (
            held.astype(np.int64),
            cluster.efs().astype(np.int64),
            cluster.eas_per_s(),
            held < _NOTHING_HELD,
        )
        members = [
            MemberLoad(*values) for values in zip(*(c.tolist() for c in columns), strict=True)
        ]
        many_keys = (cluster.keys_in_lines() > 1).tolist()
        table = cluster.table
        return tuple(
            SectionLoad(line, tuple([members[slot] for slot in slots]), many)
            for line, slots, many in zip(table.lines, table.slots, many_keys, strict=True)
        )
