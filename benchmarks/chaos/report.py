"""What a chaos run came to: the object `--json` prints, and whether it was good. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.chaos.checker import Verdict
from benchmarks.chaos.faults import Toll
from benchmarks.chaos.moves import Moves
from benchmarks.chaos.ordering import Given

RECOVERY_BAR_S = 30.0
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Report:
    verdict: Verdict
    toll: Toll
    moves: Moves
    given: Given
    epochs: int
    """The highest that any line came to."""
    problems: list[str]
    """What must not be and is no matter for the checker: users that failed, errors nobody expected."""
    deaths: dict[str, int]
    """Programs that ended though nobody ordered it: a server without its PostgreSQL may, for one."""
    seed: int
    minutes: float

    @property
    def is_good(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> list[str]:
        found = [
            f"{kind}: {finding}"
            for kind, findings in self.verdict.findings.items()
            for finding in [*map(str, findings[:SHOWN]), *_and_more(len(findings) - SHOWN)]
        ]
        found += [
            f"recovery took {took_s:.1f} s after: {what}"
            for took_s, what in self.toll.recoveries_s
            if took_s > RECOVERY_BAR_S
        ]
        return [*found, *self.given.wrong_taken, *self.problems]

    @property
    def summary(self) -> dict[str, Any]:
        verdict, toll = self.verdict, self.toll
        return {
            "faults": {"total": toll.faults, "by_kind": dict(sorted(toll.kinds.items()))},
            "kills": toll.kills,
            "moves": {**self.moves.summary(toll.spans_us), "orders": self.given.summary},
            "registered": verdict.registered,
            "deliveries_expected": verdict.expected,
            "delivered": verdict.delivered,
            "missed": len(verdict.missed),
            "repeated": len(verdict.repeated),
            "phantom": len(verdict.phantom),
            "lost": len(verdict.lost),
            "epochs": {
                "highest": self.epochs,
                "split": len(verdict.split_epochs),
                "back": len(verdict.epochs_back),
            },
            "recovery_s_max": round(toll.recovery_s_max, 2),
            "problems": self.problems,
            "deaths": self.deaths,
            "minutes": self.minutes,
            "seed": self.seed,
        }


def _and_more(count: int) -> list[str]:
    return [f"and {count} more"] if count > 0 else []
