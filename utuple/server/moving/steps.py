"""The steps of a move, as they reach the writer, and what becomes of each. Pure values.

Each step is carried out in the writer's order and is durable before it is answered. On the home: Begin, Commit,
Abort, End. On whoever takes part: Learn, Promise, HearLines, Forget, BeginShipping, ReceiveRows, EndShipping. On a member of a
partitioned line: CheckHeard, Prune.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.move import Move
from utuple.model.columns import Columns
from utuple.model.packed import Packed
from utuple.store.contract import FormalPosition


@dataclass(frozen=True, slots=True)
class Begin:
    id: bytes
    move: Move


@dataclass(frozen=True, slots=True)
class Commit:
    id: bytes
    cut: int | None
    """How many changes of the section's EFs and CAs the learner has; None: nobody had to learn."""
    copied: int = 0
    rows: int = 0
    cuts: int = 0


@dataclass(frozen=True, slots=True)
class Abort:
    id: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """Everyone who must know does."""

    id: bytes
    held_us: int = 0


@dataclass(frozen=True, slots=True)
class Learn:
    id: bytes
    attempt: int
    """Grows each time the home begins anew."""
    number: int
    """Of this portion: a late one is passed over, or it could undo what came after it."""
    templates: Sequence[Packed]
    left_us: Sequence[int]
    """The lifetime each has left."""
    cancelled: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Promise:
    """Durably ready for these lines, once it is answered."""

    id: bytes
    lines: tuple[Line, ...]
    servers: tuple[ServerInfo, ...]
    learned: tuple[int, bytes] | None
    """Count and digest of what must be known."""
    shipped: int | None
    """How many shadows must be held."""


@dataclass(frozen=True, slots=True)
class HearLines:
    lines: tuple[Line, ...]
    servers: tuple[ServerInfo, ...]
    settled: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Forget:
    id: bytes


@dataclass(frozen=True, slots=True)
class CheckLine:
    """Is this the line here, in the writer's order, and is this server off in it?"""

    line: Line


@dataclass(frozen=True, slots=True)
class CheckHeard:
    """Is this the line here, in the writer's order, or a later one? Then nothing more is taken by an earlier layout: what was
    has a seq up to this server's own of that moment, which is counted in the outcome."""

    line: Line


@dataclass(frozen=True, slots=True)
class Prune:
    """These EFs are not in this server's share of a partitioned line, and nothing that they could match is left here."""

    line: Line
    ids: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class BeginShipping:
    id: bytes
    line: Line
    heir: ServerInfo


@dataclass(frozen=True, slots=True)
class ReceiveRows:
    """At the heir: some of the rows of who is drained, as shadows, and what has become of its formals."""

    id: bytes
    origin: str
    """Who registered the events."""
    after: int
    """The seq of that origin these events follow: none may be missing between."""
    events: Columns
    seqs: array[int]
    events_left_us: array[int]
    devices: Columns
    devices_left_us: array[int]
    positions: Sequence[FormalPosition] = ()
    cancelled: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class EndShipping:
    """The heir has everything: what was shipped is deleted."""

    id: bytes


@dataclass(frozen=True, slots=True)
class Leave:
    """The operator's wish."""

    stay: bool


@dataclass(frozen=True, slots=True)
class HearGrants:
    """Not of a move, but a note of the server's own all the same: the grants it judges by, from now on."""

    number: int
    body: bytes


Step: TypeAlias = (
    Begin
    | Commit
    | Abort
    | End
    | Learn
    | Promise
    | HearLines
    | Forget
    | CheckLine
    | CheckHeard
    | Prune
    | BeginShipping
    | ReceiveRows
    | EndShipping
    | Leave
    | HearGrants
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step."""

    done: bool
    reason: str = ""
    never: bool = False
    """It is not a matter of time."""
    count: int = 0
    digest: bytes = b""


DONE = Outcome(done=True)


def refused(reason: str, *, never: bool = False) -> Outcome:
    return Outcome(done=False, reason=reason, never=never)
