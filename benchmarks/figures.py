"""From the figures of several runs to one object: medians, spread, targets and whether they were met. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from utuple.errors import InvalidInput

Figures = Mapping[str, float]
"""Of one run, by name; whole numbers are counts."""

_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be. `always`: in every run, because it is a law and not a speed; then it is the
    worst run that is shown and judged, else the median. `rival`: whom it compares with; where that one is not
    installed there is no figure, and the target is skipped rather than missed."""

    figure: str
    at_most: float | None = None
    at_least: float | None = None
    always: bool = False
    rival: str = ""

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.at_least is None):
            raise InvalidInput("target", self.figure, "is either at_most or at_least")

    def __str__(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return f">= {self.at_least:g}"

    def is_met_by(self, value: float) -> bool:
        if self.at_most is not None:
            return value <= self.at_most
        assert self.at_least is not None
        return value >= self.at_least

    def judged(self, values: Sequence[float]) -> float:
        if not self.always:
            return median(values)
        return max(values) if self.at_most is not None else min(values)


@dataclass(frozen=True, slots=True)
class Summary:
    """Of all runs of one benchmark."""

    name: str
    runs: Sequence[Figures]
    targets: Sequence[Target]
    machine: Mapping[str, Any]
    notes: Mapping[str, str] = field(default_factory=dict)
    """What was durable and what was not, of ours and of each rival."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise InvalidInput("runs", 0, "there is nothing to sum up")
        for run in self.runs[1:]:
            if run.keys() != self.runs[0].keys():
                uneven = run.keys() ^ self.runs[0].keys()
                raise InvalidInput("figures", sorted(uneven), "must be found in every run")
        for target in self.targets:
            if target.figure not in self.runs[0] and not target.rival:
                raise InvalidInput("target", target.figure, "is no figure of this benchmark")

    @property
    def figures(self) -> dict[str, float]:
        judged = {target.figure: target for target in self.targets}
        found = {}
        for name in self.runs[0]:
            values = [run[name] for run in self.runs]
            target = judged.get(name)
            found[name] = _tidy(median(values) if target is None else target.judged(values))
        return found

    @property
    def spread(self) -> dict[str, list[float]]:
        """Least and most."""
        names = self.runs[0]
        columns = {name: [run[name] for run in self.runs] for name in names}
        return {name: [_tidy(min(v)), _tidy(max(v))] for name, v in columns.items()}

    @property
    def skipped(self) -> dict[str, str]:
        """Targets of rivals that are not here, and which."""
        absent = (target for target in self.targets if target.figure not in self.runs[0])
        return {target.figure: f"{target.rival} is not installed" for target in absent}

    @property
    def judged_targets(self) -> list[Target]:
        return [target for target in self.targets if target.figure in self.runs[0]]

    @property
    def missed_targets(self) -> list[Target]:
        seen = self.figures
        return [
            target for target in self.judged_targets if not target.is_met_by(seen[target.figure])
        ]

    @property
    def is_met(self) -> bool:
        return not self.missed_targets

    @property
    def breaks_a_law(self) -> bool:
        return any(target.always for target in self.missed_targets)

    def to_json(self) -> dict[str, Any]:
        missed = {target.figure for target in self.missed_targets}
        return {
            "benchmark": self.name,
            **self.figures,
            "target": {target.figure: str(target) for target in self.targets},
            "met": self.is_met,
            "met_by": {
                target.figure: target.figure not in missed for target in self.judged_targets
            },
            "skipped": self.skipped,
            "runs": len(self.runs),
            "spread": self.spread,
            "notes": dict(self.notes),
            "machine": dict(self.machine),
        }


def _tidy(value: float) -> float:
    return value if isinstance(value, int) else round(value, _DIGITS)
