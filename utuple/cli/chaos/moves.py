"""The moves of a chaos run, as their homes record them, whoever ordered them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from utuple.cli.records import MADE, UNDER_WAY, kind_shown
from utuple.wire import utuple_pb2 as pb


@dataclass(slots=True)
class Moves:
    _kinds: dict[bytes, str] = field(default_factory=dict)
    _steps: dict[bytes, str] = field(default_factory=dict)
    """By id: the last that was seen."""

    def note(self, record: pb.MoveRecord) -> None:
        self._kinds[record.id] = kind_shown(record.order.kind)
        self._steps[record.id] = pb.MoveStep.Name(record.step).lower()

    @property
    def made(self) -> Counter[str]:
        """By kind: those whose new epoch was decided."""
        return Counter(self._kinds[id_] for id_, step in self._steps.items() if step in MADE)

    @property
    def aborted(self) -> int:
        return sum(step in ("aborted", "over") for step in self._steps.values())

    @property
    def under_way(self) -> list[str]:
        return [self._kinds[id_] for id_, step in self._steps.items() if step in UNDER_WAY]

    @property
    def summary(self) -> dict[str, Any]:
        made = self.made
        kinds = dict(sorted(made.items()))
        return {"total": made.total(), "by_kind": kinds, "aborted": self.aborted}
