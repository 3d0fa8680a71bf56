"""A round of the live planner over a placement study: loads in, moves made. Pure.

The snapshot is what the monitor's window would hold once loads have been steady for a while: averages have
arrived, and an alarm is raised above its threshold and cleared below the lower one (tests compare the two).
"""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from load_monitor.planning.advice import AddServers
from load_monitor.planning.planner import Plan, plan
from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import ClusterSnapshot, Done
from load_monitor.window import LOAD_MAX
from ops_sim.placement.cluster import World
from ops_sim.placement.loads import Flags, SectionLoads, ServerLoads
from ops_sim.placement.splitmix import Floats


def raised(was: Flags, load: Floats, start: float, stop: float) -> Flags:
    """The alarm of a load that is steady: load_monitor.window.Alarm after hold_s."""
    alarm: Flags = (load > start) | (was & (load >= stop))
    return alarm


class Rounds:
    """The monitor's side: its alarms, and the moves it remembers."""

    def __init__(self, world: World, policy: Policy) -> None:
        self._world, self._policy = world, policy
        self._busy: Flags = np.zeros(0, np.bool_)
        self._full: Flags = np.zeros(0, np.bool_)
        self._recent: deque[Done] = deque()
        self._servers = ServerLoads(int(world.cost.memory_bytes))
        self._sections = SectionLoads()
        self.step_s = policy.hold_s + policy.settle_s + 5 * policy.smoothing_s
        """Between two plans that both see what the one before did."""
        self.wanted = 0
        """Servers the planner asks the operator for."""

    def run(self, now_s: float, limit: int) -> Counter[str]:
        """Plans until nothing moves, at most so many. Moves by kind."""
        made: Counter[str] = Counter()
        for number in range(limit):
            self._world.settle()
            at_s = now_s + number * self.step_s
            planned = self._plan(at_s)
            for move in planned.moves:
                self._world.make(move)
                self._recent.append(Done(move, at_s))
                made[type(move).__name__] += 1
            if not planned.moves:
                break
        else:
            self._world.settle()
        return made

    def _plan(self, now_s: float) -> Plan:
        while self._recent and self._recent[0].at_s <= now_s - self._policy.limit_window_s:
            self._recent.popleft()
        planned = plan(self.snapshot(now_s), self._policy)
        additions = (one.count for one in planned.advice if isinstance(one, AddServers))
        self.wanted = max(additions, default=0)
        return planned

    def snapshot(self, now_s: float) -> ClusterSnapshot:
        world, policy = self._world, self._policy
        processing = np.minimum(world.bearing.processing, LOAD_MAX)
        memory = world.bearing.memory
        new = len(processing) - len(self._busy)
        busy, full = np.pad(self._busy, (0, new)), np.pad(self._full, (0, new))
        self._busy = raised(busy, processing, policy.processing_start, policy.processing_stop)
        self._full = raised(full, memory, policy.memory_start, policy.memory_stop)
        self._servers.update(world.names, (processing, memory, self._busy, self._full))
        self._sections.update(world)
        return ClusterSnapshot(
            now_s,
            tuple(self._servers.loads),
            tuple(self._sections.loads),
            (),
            tuple(self._recent),
        )
