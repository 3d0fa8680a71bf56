"""What an attempt's outcome means, and how the last one is put to the caller. No I/O.

`retry.py` decides by fates; this is where answers and errors become fates, and a given-up attempt becomes
one of the errors of the public face.
"""

from __future__ import annotations

from dataclasses import dataclass

from utuple.client.routing.retry import Fate, Tries
from utuple.client.sending.rows import Commands
from utuple.errors import (
    Closed,
    Conflict,
    InvalidInput,
    NotAllowed,
    NotRegistered,
    OutcomeUnknown,
    Overloaded,
    Refused,
    Unavailable,
    UnknownHost,
    UTupleError,
)
from utuple.model.columns import Columns
from utuple.model.utuple import UTuple
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import Shown

BEHIND_REASONS = frozenset((pb.STALE, pb.NOT_SERVED, pb.OFF))


class Behind(Exception):
    """A server refused because of the epoch: nothing was registered there, its line was heard."""


@dataclass(frozen=True, slots=True)
class PendingEvents:
    """Events whose outcome is unknown, with the ids they were sent by."""

    columns: Columns

    def __repr__(self) -> str:
        return f"<{len(self.columns)} events, may or may not be registered>"


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command whose outcome is unknown."""

    command: UTuple
    notify: str | None = None


@dataclass(frozen=True, slots=True)
class PendingCommands:
    """Simple commands whose outcome is unknown, with the ids they were sent by."""

    slices: tuple[Commands, ...]

    def __repr__(self) -> str:
        rows = sum(len(one.addresses) for one in self.slices)
        return f"<{rows} commands, may or may not be handed over>"


def fate_of(error: Exception) -> Fate | None:
    """None: no further attempt can help."""
    match error:
        case UnknownHost():
            return None
        case Behind():
            return Fate.BEHIND
        case Overloaded():
            return Fate.FULL
        case NotRegistered():
            return Fate.UNREACHABLE
        case OutcomeUnknown():
            return Fate.LOST
    return None


def retry_after_s(error: Exception) -> float:
    """Only a server that says how long knows it; a refused connection does not."""
    return error.retry_after_s if isinstance(error, Overloaded) else 0.0


def refused(refusal: pb.Refusal) -> Refused:
    """A refusal no retry can change."""
    if refusal.reason == pb.CONFLICT:
        return Conflict(refusal.rule or "this id is already registered with other content")
    if refusal.reason == pb.NOT_ALLOWED:
        return NotAllowed(refusal.rule)
    rule = refusal.rule or "the server refuses it"
    return InvalidInput(refusal.field, Shown(refusal.value), rule)


def in_row(error: Refused, row: int, what: str = "events") -> Refused:
    """The same refusal, naming the event or command among many."""
    if isinstance(error, InvalidInput):
        return InvalidInput(f"{what}[{row}].{error.field}", error.value, error.rule)
    if isinstance(error, Conflict | NotAllowed):
        return type(error)(f"{what}[{row}]: {error}")
    return error


def raise_refusals(refusals: list[pb.Refusal]) -> None:
    """For calls with one uTuple: raise what its refusals mean."""
    for refusal in refusals:
        if refusal.reason not in BEHIND_REASONS:
            raise refused(refusal)
    if refusals:
        raise Behind(pb.Reason.Name(refusals[0].reason))


def is_unknown(error: Exception, tries: Tries) -> bool:
    """After this no attempt follows. It may have come when an answer was lost before; but a refusal is an answer, unless it
    is of the credentials, which may have allowed the attempt before."""
    return tries.retry and (not isinstance(error, Refused) or isinstance(error, NotAllowed))


def given_up(error: Exception, *, unknown: bool, pending: object = None) -> UTupleError:
    """The error for the caller after the last attempt."""
    said = str(error) or type(error).__name__
    if unknown:
        return OutcomeUnknown(
            f"may or may not be registered: {said}; space.retry(error) is safe", pending=pending
        )
    if isinstance(error, Refused | Closed):
        return error
    if isinstance(error, Behind):
        return Unavailable(f"the servers do not agree yet who serves this ({said})")
    if isinstance(error, NotRegistered):
        return error
    return Unavailable(said)
