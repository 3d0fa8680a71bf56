"""A study of placement: one scenario, day by day, by the dynamic-help method or the existing one. Pure.

Gives a row a day: how evenly load lies, what moved, how big the table is, how near the worst condition (every
server in charge of all sections, so that every EF is copied to all of them; Appendix A).
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np

from load_monitor.planning.policy import Policy
from ops_sim.cost.model import CostModel
from ops_sim.placement.cluster import World
from ops_sim.placement.dht import VirtualServers
from ops_sim.placement.monitor import Rounds
from ops_sim.placement.scenario import DAY_S, EFS_PER_DEVICE, Scenario
from ops_sim.placement.usage import Bearing

PROPOSED, EXISTING = "dynamic help", "virtual servers"
METHODS = (PROPOSED, EXISTING)
HIGH, FULL = 0.9, 1.0
_HELPS = ("HelpProcessing", "HelpMemory")
_FLIPS = ("FlipOn", "FlipOff")

Row: TypeAlias = dict[str, float | int | str]


class Proposed:
    """By the planner that runs. May be pickled after any day and goes on from there."""

    def __init__(self, scenario: Scenario, cost: CostModel, policy: Policy) -> None:
        self._scenario = scenario
        self._world = World(scenario, cost)
        self._rounds = Rounds(self._world, policy)
        self._opened = self._rounds.run(-scenario.opening * self._rounds.step_s, scenario.opening)

    def live(self, day: int) -> Row:
        scenario, world, rounds = self._scenario, self._world, self._rounds
        world.begin(day)
        made, worst = self._opened, None
        for number in range(scenario.looks):
            world.look(number)
            now_s = DAY_S * (day + number / scenario.looks)
            made.update(rounds.run(now_s, scenario.rounds))
            world.note()
            worst = _worse(worst, world.bearing)
        world.end()
        assert worst is not None
        row: Row = {
            "scenario": scenario.name,
            "method": PROPOSED,
            **_loads(scenario, day, worst),
            **_moves(made),
            "copied_efs": world.copied_efs,
            "migrated_eas": 0.0,
            **_table([len(line.members) for line in world.rows.lines]),
            "worst_share": _worst_share(world),
            "servers_wanted": rounds.wanted,
        }
        world.copied_efs = 0.0
        self._opened = Counter()
        return row


class Existing:
    """By a traditional DHT with virtual servers."""

    def __init__(self, scenario: Scenario, cost: CostModel, policy: Policy) -> None:
        self._scenario = scenario
        self._ring = VirtualServers(scenario, cost, policy)
        self._opened = self._ring.run(scenario.opening)

    def live(self, day: int) -> Row:
        scenario, ring = self._scenario, self._ring
        made, worst = self._opened + ring.begin(day), None
        for number in range(scenario.looks):
            ring.look(number)
            made.update(ring.run(scenario.rounds))
            worst = _worse(worst, ring.bear())
        ring.end()
        assert worst is not None
        row: Row = {
            "scenario": scenario.name,
            "method": EXISTING,
            **_loads(scenario, day, worst),
            **_moves(made),
            "copied_efs": 0.0,
            "migrated_eas": ring.migrated_eas,
            **_table([1] * len(ring)),
            "worst_share": 0.0,
            "servers_wanted": 0,
        }
        ring.migrated_eas = 0.0
        self._opened = Counter()
        return row


def begin(method: str, scenario: Scenario, cost: CostModel, policy: Policy) -> Proposed | Existing:
    return (Proposed if method == PROPOSED else Existing)(scenario, cost, policy)


def _worse(before: Bearing | None, now: Bearing) -> Bearing:
    """The moment of the day at which the busiest server is busiest."""
    if before is None or now.processing.max() > before.processing.max():
        return now
    return before


def _loads(scenario: Scenario, day: int, bears: Bearing) -> Row:
    processing, memory = bears.processing, bears.memory
    either = np.maximum(processing, memory)
    return {
        "day": day,
        "servers": scenario.servers_on(day),
        "devices": scenario.devices_on(day),
        "processing_mean": float(processing.mean()),
        "processing_max": float(processing.max()),
        "imbalance": _over_mean(processing.max(), processing.mean()),
        "memory_mean": float(memory.mean()),
        "memory_max": float(memory.max()),
        "memory_imbalance": _over_mean(memory.max(), memory.mean()),
        "servers_over_90": int((either > HIGH).sum()),
        "servers_over_100": int((either > FULL).sum()),
    }


def _moves(made: Counter[str]) -> Row:
    helps, flips = (sum(made[kind] for kind in kinds) for kinds in (_HELPS, _FLIPS))
    splits, releases = made["Split"], made["Release"]
    return {
        "moves": made.total(),
        "helps": helps,
        "flips": flips,
        "splits": splits,
        "releases": releases,
        "transfers": made.total() - helps - flips - splits - releases,
    }


def _table(members: list[int]) -> Row:
    return {
        "lines": len(members),
        "members": sum(members),
        "members_mean": sum(members) / len(members),
        "members_max": max(members),
    }


def _worst_share(world: World) -> float:
    """0: each EF at one server, the best condition. 1: each at every server, the worst (section 4)."""
    servers = len(world.names)
    efs = world.scenario.devices_on(world.day) * EFS_PER_DEVICE
    if servers < 2:
        return 0.0
    return max(0.0, float(world.templates().sum() / efs - 1.0) / (servers - 1))


def _over_mean(most: float, mean: float) -> float:
    return float(most / mean) if mean > 0 else 1.0
