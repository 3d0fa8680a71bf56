"""Moves as an operator reads them: a home's record, and what a monitor has ordered. Pure, but for the messages it reads.

The fields are those that `--json` prints, in that order. Keys are in hexadecimal: they do not fit JSON's safe numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from utuple.cluster.move import KINDS, MoveKind
from utuple.cluster.record import MADE, UNDONE, MoveStep
from utuple.wire import utuple_pb2 as pb

_TOLD_US = 5_000_000
"""After the commit, how long before a record that is not done is taken as it is: somebody does not hear."""
_MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class ShownMove:
    """One on record. Older notes may lack fields that came later, so all but the id have a default."""

    id: str
    home: str = ""
    kind: str = ""
    start: str = ""
    end: str = ""
    epoch: int = 0
    member: str = ""
    helper: str | None = None
    key: str | None = None
    why: str = ""
    step: str = ""
    began_us: int = 0
    committed_us: int | None = None
    ended_us: int | None = None
    seconds: float = 0.0
    """From the beginning to the commit, or to giving up; until the look if neither was."""
    copied: int = 0
    rows: int = 0
    held_back_ms: float = 0.0
    cuts: int = 0
    reason: str = ""

    @property
    def is_under_way(self) -> bool:
        return self.step in {step.value for step in UNDONE}

    @property
    def is_made(self) -> bool:
        return self.step in {step.value for step in MADE}

    def is_settled(self, now_us: int) -> bool:
        """It is made, and its record says all it will say soon."""
        committed_us = self.committed_us or now_us
        return self.step == MoveStep.DONE.value or (
            self.is_made and now_us - committed_us > _TOLD_US
        )


@dataclass(frozen=True, slots=True)
class ShownOrder:
    """An order of a load monitor, and the home's answer."""

    at_us: int
    home: str
    kind: str
    start: str
    end: str
    epoch: int
    member: str
    helper: str | None
    key: str | None
    why: str
    accepted: bool
    reason: str


class _Planned(TypedDict):
    kind: str
    start: str
    end: str
    epoch: int
    member: str
    helper: str | None
    key: str | None
    why: str


def _planned_of(move: pb.Move) -> _Planned:
    return {
        "kind": kind_of(move.kind),
        "start": f"{move.start:016x}",
        "end": f"{move.last + 1:016x}",
        "epoch": move.epoch,
        "member": move.member,
        "helper": move.helper or None,
        "key": f"{move.key:016x}" if move.kind in (pb.SPLIT, pb.MERGE) else None,
        "why": move.why,
    }


def kind_of(kind: int) -> str:
    names = {pb.MoveKind.Value(kind.name): kind.value for kind in MoveKind}
    return names.get(pb.MoveKind.ValueType(kind), f"kind {kind}")


def move_of(record: pb.MoveRecord, home: str, now_us: int) -> ShownMove:
    until_us = record.committed_us or record.ended_us or now_us
    return ShownMove(
        id=record.id.hex(),
        home=home,
        **_planned_of(record.move),
        step=pb.MoveStep.Name(record.step).lower(),
        began_us=record.began_us,
        committed_us=record.committed_us or None,
        ended_us=record.ended_us or None,
        seconds=round(max(0, until_us - record.began_us) / _MICROSECONDS, 3),
        copied=record.copied,
        rows=record.rows,
        held_back_ms=round(record.held_us / 1000, 1),
        cuts=record.cuts,
        reason=record.reason,
    )


def ordered_of(message: pb.Ordered) -> ShownOrder:
    return ShownOrder(
        at_us=message.at_us,
        home=message.home,
        **_planned_of(message.move),
        accepted=message.accepted,
        reason=message.reason,
    )


def ends(move: ShownMove | ShownOrder) -> tuple[str, str]:
    """The first and the last key of its section, as `utuple table` shows them."""
    return move.start, f"{int(move.end, 16) - 1:016x}"


def sentence(move: ShownMove | ShownOrder) -> str:
    """`server-2 helps server-1 (processing load)`, and the like."""
    kind = next((kind for kind in MoveKind if kind.value == move.kind), None)
    if kind is None:  # of a newer server
        return f"{move.kind} {move.member}"
    return KINDS[kind].sentence.format(move)
