"""One batch on its way through the writer: what it gathers, what it commits, what is said afterwards. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from utuple.cluster.line import Line
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.server.matching.matched import Matches
from utuple.server.writing.conflicts import NOBODY_ASKS, Owners
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.request import Answer
from utuple.store.contract import Batch, FormalPosition, StoredTemplate, Transaction


@dataclass(slots=True)
class Draft:
    """What the requests of one batch add to its transaction, while they are judged one after another."""

    owners: Owners = NOBODY_ASKS
    events: list[Batch] = field(default_factory=list)
    devices: list[Batch] = field(default_factory=list)
    templates: list[StoredTemplate] = field(default_factory=list)
    cancelled: list[bytes] = field(default_factory=list)
    positions: list[FormalPosition] = field(default_factory=list)
    lines: list[Line] | None = None
    changed: list[Line] = field(default_factory=list)
    """Lines that are news here."""
    notes: dict[str, bytes | None] = field(default_factory=dict)
    revealed: list[bytes] = field(default_factory=list)
    dropped: list[bytes] = field(default_factory=list)
    removed: list[Section] = field(default_factory=list)

    def note_line(self, line: Line, lines: OwnLines) -> None:
        """A line this server has heard of, or has decided as its home."""
        if lines.hear(line):
            self.lines = lines.all
            self.changed.append(line)


@dataclass(frozen=True, slots=True)
class Housekeeping:
    """What delivery adds to a transaction: readers' positions, formals whose expiry has changed, and notes of readers' absences."""

    positions: Sequence[FormalPosition] = ()
    renewed: Sequence[tuple[bytes, int]] = ()
    notes: Mapping[str, bytes | None] = field(default_factory=dict)


@dataclass(slots=True)
class PreparedBatch:
    """A batch that was judged: the transaction to commit, and what is answered and delivered once that is durable."""

    transaction: Transaction
    answers: list[Answer]
    now_us: int = 0
    is_large: bool = False
    """Its data is looked into slice by slice."""
    unmatched: list[Batch] = field(default_factory=list)
    """EAs that were not matched yet."""
    events: list[tuple[Batch, Matches]] = field(default_factory=list)
    """EAs with the EFs they meet, to deliver once committed."""
    devices: list[tuple[Batch, Matches]] = field(default_factory=list)
    """CFs with the stored CAs they meet."""
    commands: list[StoredTemplate] = field(default_factory=list)
    """CAs whose stored CFs are to be searched, in seq order."""
    cancelled: list[bytes] = field(default_factory=list)
    changed: list[Line] = field(default_factory=list)
    """Lines that are news, to tell readers and managers."""
    accepted: Counter[Family] = field(default_factory=Counter)
    """EAs and CFs registered, for the load of each section."""
    changes: Counter[Family] = field(default_factory=Counter)
    """EFs and CAs that came or went, for the same."""
    rows: int = 0
    is_idle: bool = False
    """Nothing to commit."""
