"""What reaches the writer and what it answers: plain values, the same in every transport. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from utuple.cluster.line import Line, ServerInfo
from utuple.errors import InvalidInput, shown
from utuple.model.columns import Columns
from utuple.model.packed import Packed
from utuple.model.utuple import Family
from utuple.security.identity import Identity
from utuple.server.moving.steps import Outcome, Step

NO_COLUMNS = Columns()


class Part(Enum):
    EVENTS = 1
    DEVICES = 2
    TEMPLATES = 3
    CANCELS = 4


class Reason(Enum):
    INVALID = 1
    CONFLICT = 2
    STALE = 3
    NOT_SERVED = 4
    OFF = 5
    NOT_ALLOWED = 6


@dataclass(frozen=True, slots=True)
class Refusal:
    part: Part
    reason: Reason
    rows: Sequence[int]
    field: str = ""
    value: str = ""
    rule: str = ""


def invalid(part: Part, row: int, error: InvalidInput) -> Refusal:
    return Refusal(part, Reason.INVALID, [row], error.field, shown(error.value), error.rule)


@dataclass(frozen=True, slots=True)
class Request:
    """One call's registrations, decoded and checked; rows it lost on the way are in `refusals`."""

    retry: bool = False
    events: Columns = NO_COLUMNS
    event_rows: Sequence[int] | None = None
    """Where each row of `events` stood in the call, if some were refused; else None."""
    devices: Columns = NO_COLUMNS
    device_rows: Sequence[int] | None = None
    templates: Sequence[tuple[int, Packed]] = ()
    """(index in the call, EF or CA)"""
    cancels: Sequence[tuple[int, bytes, Family]] = ()
    epochs: Mapping[Family, int] = field(default_factory=dict)
    refusals: Sequence[Refusal] = ()
    adopt: Sequence[Line] = ()
    """The first table (and where its servers are), for a server that has no lines yet."""
    adopt_servers: Sequence[ServerInfo] = ()
    step: Step | None = None
    """A step of a move of load."""
    by: Identity | None = None
    """Who asks, on a secured server: what is another's stays as it is. None: nobody is asked."""
    rows: int = field(init=False)
    is_plain: bool = field(init=False)
    """EAs for the first time, and nothing else."""

    def __post_init__(self) -> None:
        """Both are asked for again and again on its way."""
        events = len(self.events)
        rows = events + len(self.devices) + len(self.templates) + len(self.cancels)
        is_other = self.retry or self.step is not None or bool(self.adopt)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "is_plain", 0 < events == rows and not is_other)

    @property
    def ids_of_others(self) -> list[bytes]:
        """Under which somebody else's CF may be kept, beside those of its own CFs; none if nobody asks."""
        if self.by is None:
            return []
        return [*(id_ for _, id_, _ in self.cancels), *(half.id for _, half in self.templates)]


@dataclass(slots=True)
class Answer:
    """What is not refused is registered."""

    refusals: list[Refusal]
    lines: list[Line] = field(default_factory=list)
    seq: int = 0
    """The seq up to which an EF's matches are stored ones; a CA's own seq."""
    adopted: bool = False
    outcome: Outcome | None = None
    """Of the request's step."""
