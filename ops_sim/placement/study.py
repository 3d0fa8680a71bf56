"""A study of placement: one scenario, day by day, by the dynamic-help method or the existing one. Pure.

Gives a row a day: how evenly load lies, what moved, how big the table is, how near the worst condition (every
server in charge of all sections, so that every EF is copied to all of them; Appendix A).
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol, TypeAlias

import numpy as np

from load_monitor.planning.policy import Policy
from ops_sim.cost.application import DAY_S
from ops_sim.cost.model import CostModel
from ops_sim.placement.dht import VirtualServers
from ops_sim.placement.dynamic_help import DynamicHelp
from ops_sim.placement.scenario import Scenario
from ops_sim.placement.usage import Usage
from utuple.cluster.move import MoveKind

PROPOSED, EXISTING = "dynamic help", "virtual servers"
METHODS = (PROPOSED, EXISTING)
HIGH, FULL = 0.9, 1.0
_HELPS = (MoveKind.HELP_PROCESSING.value, MoveKind.HELP_MEMORY.value)
_FLIPS = (MoveKind.FLIP_ON.value, MoveKind.FLIP_OFF.value)
_ROUNDS = 3
"""Plans at one moment of a day at most: the monitor plans until nothing moves, or time goes on."""
_OPENING_ROUNDS = 480
"""Plans before the first day at most, while a table of equal sections finds its shape: half a day of them."""

Row: TypeAlias = dict[str, float | int | str]


class Method(Protocol):
    """How load is spread over servers. May be pickled after any day and goes on from there."""

    step_s: float
    """The time between two rounds."""

    def begin(self, day: int) -> Counter[str]:
        """Servers join; gives the moves that this takes."""

    def look(self, number: int) -> None:
        """At the next moment of the day."""

    def run(self, now_s: float, limit: int) -> Counter[str]:
        """Rounds of moves until nothing moves, at most so many; gives the moves by kind."""

    @property
    def usage(self) -> Usage:
        """At this moment."""

    def end(self) -> dict[str, float]:
        """The day is over; gives figures that only this method has."""

    def members(self) -> list[int]:
        """How many each line of the table has."""


class Study:
    def __init__(self, method: str, scenario: Scenario, cost: CostModel, policy: Policy) -> None:
        self._name, self._scenario = method, scenario
        make: type[DynamicHelp | VirtualServers] = (
            DynamicHelp if method == PROPOSED else VirtualServers
        )
        self._method: Method = make(scenario, cost, policy)
        opening_s = _OPENING_ROUNDS * self._method.step_s
        self._opening_moves = self._method.run(-opening_s, _OPENING_ROUNDS)

    def live(self, day: int) -> Row:
        """One day, as a row of `schema.PLACEMENT_DAYS`. Moves of the opening count on the first."""
        scenario, method = self._scenario, self._method
        made = self._opening_moves + method.begin(day)
        self._opening_moves = Counter()
        moments = []
        for number in range(scenario.looks):
            method.look(number)
            made.update(method.run(DAY_S * (day + number / scenario.looks), _ROUNDS))
            moments.append(method.usage)
        worst = max(moments, key=lambda usage: float(usage.processing.max()))
        return {
            "scenario": scenario.name,
            "method": self._name,
            "day": day,
            "servers": scenario.servers_on(day),
            "devices": scenario.devices_on(day),
            **_loads(worst),
            **_moves(made),
            "copied_efs": 0.0,
            "migrated_eas": 0.0,
            "worst_share": 0.0,
            "servers_wanted": 0,
            **method.end(),
            **_table(method.members()),
        }


def _loads(usage: Usage) -> Row:
    processing, memory = usage.processing, usage.memory
    either = np.maximum(processing, memory)
    return {
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
    splits, releases = made[MoveKind.SPLIT.value], made[MoveKind.RELEASE.value]
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


def _over_mean(most: float, mean: float) -> float:
    return float(most / mean) if mean > 0 else 1.0
