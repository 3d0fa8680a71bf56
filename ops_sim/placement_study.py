"""A study of placement: one scenario, day by day, by the dynamic-help method or the existing one. Pure.

Gives a row a day: how evenly load lies, what moved, how big the table is, how near the worst condition (every
server in charge of all sections, so that every EF is copied to all of them; Appendix A).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from load_monitor.policy import Policy
from ops_sim.cost import CostModel
from ops_sim.placement_cost import Bearing
from ops_sim.placement_dht import VirtualServers
from ops_sim.placement_round import Rounds
from ops_sim.placement_scenario import DAY_S, EFS_PER_DEVICE, Scenario
from ops_sim.placement_world import World

PROPOSED, EXISTING = "dynamic help", "virtual servers"
METHODS = (PROPOSED, EXISTING)
HIGH, FULL = 0.9, 1.0
_HELPS = ("HelpProcessing", "HelpMemory")
_FLIPS = ("FlipOn", "FlipOff")

Row: TypeAlias = dict[str, float | int | str]


def study(method: str, scenario: Scenario, cost: CostModel, policy: Policy) -> Iterator[Row]:
    run = _proposed if method == PROPOSED else _existing
    for row in run(scenario, cost, policy):
        yield {"scenario": scenario.name, "method": method, **row}


def _proposed(scenario: Scenario, cost: CostModel, policy: Policy) -> Iterator[Row]:
    world = World(scenario, cost)
    rounds = Rounds(world, policy)
    opened = rounds.run(-scenario.opening * rounds.step_s, scenario.opening)
    for day in range(scenario.days):
        world.begin(day)
        made, worst = Counter(opened), None
        for number, weights in enumerate(world.keys.looks()):
            world.look(weights)
            now_s = DAY_S * (day + number / scenario.looks)
            made.update(rounds.run(now_s, scenario.rounds))
            world.note()
            worst = _worse(worst, world.bearing)
        world.end()
        assert worst is not None
        yield {
            **_loads(scenario, day, worst),
            **_moves(made),
            "copied_efs": world.copied_efs,
            "migrated_eas": 0.0,
            **_table([len(line.members) for line in world.rows.lines]),
            "worst_share": _worst_share(world),
            "servers_wanted": rounds.wanted,
        }
        world.copied_efs = 0.0
        opened = Counter()


def _existing(scenario: Scenario, cost: CostModel, policy: Policy) -> Iterator[Row]:
    ring = VirtualServers(scenario, cost, policy)
    opened = ring.run(scenario.opening)
    for day in range(scenario.days):
        made, worst = opened + ring.begin(day), None
        for weights in ring.keys.looks():
            ring.look(weights)
            made.update(ring.run(scenario.rounds))
            worst = _worse(worst, ring.bear())
        ring.end()
        assert worst is not None
        yield {
            **_loads(scenario, day, worst),
            **_moves(made),
            "copied_efs": 0.0,
            "migrated_eas": ring.migrated_eas,
            **_table([1] * len(ring)),
            "worst_share": 0.0,
            "servers_wanted": 0,
        }
        ring.migrated_eas = 0.0
        opened = Counter()


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
