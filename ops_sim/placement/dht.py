"""The existing method (section 4.1.2): a traditional DHT with virtual servers, for comparison. Pure.

Each server runs several virtual servers, one section each. A server above a threshold hands whole virtual servers
to light ones, as in references [14] and [15], and one that is too big for anybody is split first, as in [17];
stored uTuples travel along. A section of one key cannot be split, so a hot key stays where it is. Thresholds are
those of the dynamic-help planner, so that only the method differs.
"""

from __future__ import annotations

import heapq
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from load_monitor.planning.policy import Policy
from ops_sim.cost.application import DAY_S, EA_LIFETIME_DAYS, A
from ops_sim.cost.model import CostModel
from ops_sim.placement.keys import Keys, between
from ops_sim.placement.scenario import Scenario
from ops_sim.placement.splitmix import Floats, Words, words
from ops_sim.placement.usage import Usage, sum_by_server, usage_of
from utuple.cluster.move import MoveKind

_TOKENS = 500_000
_VIRTUAL = 8
"""Virtual servers each server begins with."""
_SHED_MAX = 64
"""Virtual servers one server hands on in a round at most."""


class VirtualServers:
    def __init__(self, scenario: Scenario, cost: CostModel, policy: Policy) -> None:
        self.scenario, self.cost, self._policy = scenario, cost, policy
        self.keys = Keys(scenario)
        self.day = 0
        self.servers = scenario.servers_first
        self.step_s = 0.0
        count = self.servers * _VIRTUAL
        self._starts: Words = np.unique(words(scenario.seed, _TOKENS, count))
        self._starts[0] = 0
        self.owner: NDArray[np.int64] = np.arange(len(self._starts)) % self.servers
        self._stock: Floats = np.zeros((EA_LIFETIME_DAYS, len(self._starts)))
        self._migrated_eas = 0.0
        self._edges = self.keys.edges(self._starts)

    # ------------------------------------------------------------------------------------------------ time

    def begin(self, day: int) -> Counter[str]:
        """Servers that join take virtual servers at random places, as nodes of a ring do."""
        self.day = day
        self.keys.live(day)
        self._stock[day % EA_LIFETIME_DAYS] = 0.0
        made: Counter[str] = Counter()
        for server in range(self.servers, self.scenario.servers_on(day)):
            tokens = words(self.scenario.seed, _TOKENS + server, _VIRTUAL)
            for token in np.setdiff1d(tokens, self._starts):
                at = self._split(int(token))
                self._hand(at, server)
                made["join"] += 1
        self.servers = self.scenario.servers_on(day)
        return made

    def look(self, number: int) -> None:
        self.keys.look(number)

    def end(self) -> dict[str, float]:
        """What came today is stored; sections split since the first look have shared it as keys lie now. Gives what only
        this method knows of the day."""
        shares = between(self.keys.mean, self._edges)
        self._stock[self.day % EA_LIFETIME_DAYS] = self.scenario.eas_on(self.day) * shares
        migrated, self._migrated_eas = self._migrated_eas, 0.0
        return {"migrated_eas": migrated}

    def members(self) -> list[int]:
        """How many members each line has: a virtual server is on one server."""
        return [1] * len(self._starts)

    # --------------------------------------------------------------------------------------------- rounds

    def run(self, now_s: float, limit: int) -> Counter[str]:
        """Rounds until nothing moves, at most so many; this method does not look at the clock."""
        del now_s
        made: Counter[str] = Counter()
        for _ in range(limit):
            now = self._round()
            made.update(now)
            if not now:
                break
        return made

    def _round(self) -> Counter[str]:
        made: Counter[str] = Counter()
        pressure = self._pressure()
        masses = self._masses()
        total = sum_by_server(self.owner, masses, self.servers)
        per_mass = pressure.sum() / max(1e-300, total.sum())
        stop = self._policy.processing_stop / self._policy.processing_start
        light = [(float(load), at) for at, load in enumerate(pressure) if load < stop]
        heapq.heapify(light)
        heavy = np.flatnonzero(pressure > 1.0)
        owned = self._owned(heavy)
        for server in heavy[np.argsort(-pressure[heavy], kind="stable")].tolist():
            mine = owned[server]
            mine = mine[np.argsort(masses[mine], kind="stable")]
            over = float(pressure[server]) - stop
            for at in mine.tolist()[:_SHED_MAX]:
                load = float(masses[at]) * per_mass
                if over <= 0 or not light:
                    break
                if load > 0 and light[0][0] + load <= stop:
                    made["transfer"] += 1
                    taker = heapq.heappop(light)
                    self._hand(at, taker[1])
                    over -= load
                    if taker[0] + load < stop:
                        heapq.heappush(light, (taker[0] + load, taker[1]))
        made.update(self._split_big(masses, per_mass, stop, set(heavy.tolist())))
        return made

    def _split_big(
        self, masses: Floats, per_mass: float, stop: float, heavy: set[int]
    ) -> Counter[str]:
        """Splits virtual servers of busy servers that nobody could take whole."""
        counts = np.diff(self._edges)
        big = np.flatnonzero((masses * per_mass > stop / 2) & (counts > 1))
        made: Counter[str] = Counter()
        for at in big[::-1].tolist():  # from behind: splitting moves those that come after
            if int(self.owner[at]) in heavy:
                made[MoveKind.SPLIT.value] += self._halve(at)
        return made

    def _halve(self, at: int) -> bool:
        first, last = int(self._edges[at]), int(self._edges[at + 1])
        summed = self.keys.mean[first : last + 1] - self.keys.mean[first]
        middle = first + int(np.searchsorted(summed, summed[-1] / 2, side="left"))
        middle = min(max(middle, first + 1), last - 1)
        key = int(self.keys.hashes[middle])
        if key <= int(self._starts[at]):
            return False
        self._split(key)
        return True

    def _owned(self, servers: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
        order = np.argsort(self.owner, kind="stable")
        bounds = np.searchsorted(self.owner[order], np.arange(self.servers + 1))
        return {s: order[bounds[s] : bounds[s + 1]] for s in servers.tolist()}

    def _hand(self, at: int, server: int) -> None:
        self.owner[at] = server
        self._migrated_eas += float(self._stock[:, at].sum())

    def _split(self, key: int) -> int:
        """The virtual server whose section holds the key gets a second one beside it, from the key on."""
        at = int(np.searchsorted(self._starts, np.uint64(key), side="right"))
        middle = int(np.searchsorted(self.keys.hashes, np.uint64(key)))
        first, last = self._edges[at - 1], self._edges[at]
        whole = float(self.keys.mean[last] - self.keys.mean[first])
        part = float(self.keys.mean[last] - self.keys.mean[middle]) / whole if whole > 0 else 0.5
        self._starts = np.insert(self._starts, at, np.uint64(key))
        self._edges = np.insert(self._edges, at, middle)
        self.owner = np.insert(self.owner, at, self.owner[at - 1])
        self._stock = np.insert(self._stock, at, self._stock[:, at - 1] * part, axis=1)
        self._stock[:, at - 1] *= 1.0 - part
        return at

    # --------------------------------------------------------------------------------------------- loads

    def _masses(self) -> Floats:
        """Each virtual server's share of what comes in now."""
        return between(self.keys.now, self._edges)

    @property
    def usage(self) -> Usage:
        now, mean = (
            sum_by_server(self.owner, shares, self.servers)
            for shares in (self._masses(), between(self.keys.mean, self._edges))
        )
        return usage_of(
            self.cost,
            now * self.scenario.eas_on(self.day) / DAY_S,
            mean * A.ef_per_s,
            sum_by_server(self.owner, self._stock.sum(axis=0), self.servers),
            mean * self.scenario.devices_on(self.day) * A.efs,
        )

    def _pressure(self) -> Floats:
        """How near each server is to the nearer of its thresholds: 1.0 is there."""
        usage, policy = self.usage, self._policy
        return np.maximum(
            usage.processing / policy.processing_start, usage.memory / policy.memory_start
        )
