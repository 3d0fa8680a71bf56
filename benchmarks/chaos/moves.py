"""The moves of a chaos run, as their homes record them, whoever ordered them. Pure.

A home keeps the last few hundred records: they are looked at often, and each is known by its id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from utuple.cluster.move import MoveKind
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.model.section import Section

HELD_BAR_US = 100_000
"""EFs and CAs are held back no longer than this where nothing is wrong."""

GISTS = (
    "was drained of this section",
    "is not what the order was planned by",
    "a move is under way here",
    "is not its home",
    "cannot leave: it holds uTuples",
    "cannot leave",
    "EFs or CAs came after the cut",
    "the address is not known",
    "not made within",
)
"""Why moves are refused or given up, the most telling first."""

Span = tuple[int, int]
"""From, until; microseconds."""


@dataclass(slots=True)
class Moves:
    records: dict[bytes, MoveRecord] = field(default_factory=dict)
    """By id: as it was last seen."""
    _homes: dict[bytes, str] = field(default_factory=dict)

    def note(self, home: str, records: Iterable[MoveRecord]) -> None:
        """All that this home has. What was under way there and is not known there any more never began:
        a home shows a record that it is about to commit, and its store was lost just then."""
        known = {record.id: record for record in records}
        for record in self.under_way:
            if self._homes[record.id] == home and record.id not in known:
                del self.records[record.id]
        self.records |= known
        self._homes |= dict.fromkeys(known, home)

    # --- for the next order ----------------------------------------------------------------------

    @property
    def under_way(self) -> list[MoveRecord]:
        return [one for one in self.records.values() if one.is_undone]

    @property
    def busy(self) -> tuple[Section, ...]:
        """Where no other move can begin."""
        learning = (one for one in self.under_way if one.step is MoveStep.LEARNING)
        return tuple(one.move.section for one in learning)

    @property
    def left(self) -> tuple[tuple[str, Section], ...]:
        """Who was drained of which section."""
        drains = (one.move for one in self._made() if one.move.kind is MoveKind.DRAIN)
        return tuple((move.member, move.section) for move in drains)

    # --- for the report --------------------------------------------------------------------------

    @property
    def made(self) -> Counter[str]:
        """By kind: those whose new epoch was decided."""
        return Counter(one.move.kind.value for one in self._made())

    def _made(self) -> Iterator[MoveRecord]:
        return (one for one in self.records.values() if one.is_made)

    @property
    def aborted(self) -> list[MoveRecord]:
        return [
            one for one in self.records.values() if one.step in (MoveStep.ABORTED, MoveStep.OVER)
        ]

    def held_back(self, faults: Iterable[Span] = ()) -> list[tuple[MoveRecord, bool]]:
        """Those that held EFs and CAs back beyond the bar, and whether there was peace meanwhile."""
        troubles = list(faults)
        long = [one for one in self.records.values() if one.held_us > HELD_BAR_US]
        return [(one, not any(_overlap(one, trouble) for trouble in troubles)) for one in long]

    def summary(self, faults: Iterable[Span] = ()) -> dict[str, Any]:
        made, aborted = self.made, self.aborted
        held_ms = sorted(one.held_us / 1000 for one in self._made() if one.cuts)
        long = self.held_back(faults)
        return {
            "total": made.total(),
            "by_kind": dict(sorted(made.items())),
            "aborted": len(aborted),
            "aborted_by_kind": _counted(one.move.kind.value for one in aborted),
            "aborted_because": _counted(gist(one.reason) for one in aborted),
            "held_back_ms": {
                "median": round(held_ms[len(held_ms) // 2], 1) if held_ms else 0.0,
                "most": round(held_ms[-1], 1) if held_ms else 0.0,
                "over_100": len(long),
                "over_100_in_peace": sum(peace for _, peace in long),
            },
        }


def sentence(record: MoveRecord) -> str:
    return f"{record.move}: {record.step.value}{f', {record.reason}' if record.reason else ''}"


def gist(reason: str) -> str:
    """Without names and numbers, so that the same counts as the same."""
    plain = re.sub(r"it holds \d+ uTuples", "it holds uTuples", reason)
    plain = re.sub(r"the address of \S+ is not known", "the address is not known", plain)
    known = next((one for one in GISTS if one in plain), None)
    if known is not None:
        return known
    return re.sub(r"\[[0-9a-f]+, [0-9a-f]+\)|\S*\d\S*", "…", plain)[:100]


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _overlap(record: MoveRecord, span: Span) -> bool:
    until_us = record.ended_us or record.committed_us or span[1]
    return record.began_us < span[1] and span[0] < until_us
