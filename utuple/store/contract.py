"""The store: where one uTupleServer keeps what it must not lose. The comments are the specification;
`memory.py` is the plain twin, `postgres/` the real one, and one conformance suite tries both.

A store is written by one writer through `commit` and read by many. What `commit` has returned from is
durable and visible to every later read. Expired uTuples are never returned, collected or not.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple, Protocol

from utuple.cluster.line import Line, ServerInfo
from utuple.errors import UTupleError
from utuple.model.columns import Columns
from utuple.model.packed import Packed
from utuple.model.section import Section
from utuple.model.utuple import Family, UTuple

OWN_ORIGIN = ""
"""The origin of what was registered here; another server's name on uTuples a drain has moved here."""


NO_SEQ = 0
"""Of an EF or CA of lifetime 0, which is never stored: it has no place in the order, and nothing to acknowledge."""


class StoreUnavailable(UTupleError):
    """The database is gone. `maybe_committed` says whether a commit's outcome is unknown."""

    def __init__(self, message: str, *, maybe_committed: bool = False) -> None:
        super().__init__(message)
        self.maybe_committed = maybe_committed


class StoreRefused(UTupleError):
    """This store must not be used: another version, unsafe settings, another process holds it. The
    message says what to do."""


@dataclass(frozen=True, slots=True)
class Batch:
    """EAs or CFs with their seq and expiry, row by row."""

    columns: Columns
    seqs: array[int]  # 'Q'
    """In the order of `origin`; a CF's always in this server's own."""
    expires_us: array[int]  # 'q'
    """None of EAs that a search has found."""
    origin: str = OWN_ORIGIN
    shadow: bytes = b""
    """Brought here by this move (16 bytes) and hidden from searches until it is revealed."""
    is_fleeting: bool = False
    """All of lifetime 0: matched and gone. Nothing of it is stored and no seq is given to it. Its `seqs` say after which
    registration each row came, for this server's own use: readers are told none."""

    def __len__(self) -> int:
        return len(self.seqs)

    def seq_before(self, row: int) -> int:
        """Of the last registration before this row's."""
        return self.seqs[row] if self.is_fleeting else self.seqs[row] - 1

    def take(self, rows: Sequence[int]) -> Batch:
        """These rows, in this order."""
        return Batch(
            self.columns.take(rows),
            array("Q", [self.seqs[row] for row in rows]),
            array("q", [self.expires_us[row] for row in rows] if self.expires_us else ()),
            self.origin,
            self.shadow,
            self.is_fleeting,
        )


NO_ROWS = Batch(Columns(), array("Q"), array("q"))


class StoredTemplate(NamedTuple):
    """An EF or a CA."""

    packed: Packed
    seq: int
    expires_us: int

    @property
    def utuple(self) -> UTuple:
        """Made anew each time."""
        return self.packed.utuple


def stored_templates(
    halves: Sequence[Packed], seqs: Iterable[int], expires_us: Iterable[int]
) -> list[StoredTemplate]:
    """Many, without a call of Python for each."""
    rows = zip(halves, seqs, expires_us, strict=True)
    return list(map(tuple.__new__, repeat(StoredTemplate), rows))


@dataclass(frozen=True, slots=True)
class FormalPosition:
    """How far a reader has acknowledged one formal (EF or CF), in one origin's seqs."""

    formal: bytes
    origin: str
    seq: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """All or nothing. `seq` is the server's seq after it; it is kept even when no row is."""

    seq: int
    events: Sequence[Batch] = ()
    devices: Sequence[Batch] = ()
    """A CF whose id is stored already is replaced (that is how it is renewed)."""
    templates: Sequence[StoredTemplate] = ()
    """An EF or CA whose id is stored already is replaced."""
    cancelled: Sequence[bytes] = ()
    """Ids of EFs, CAs and CFs to forget, with their positions. Unknown ids are ignored."""
    renewed: Sequence[tuple[bytes, int]] = ()
    """(id, expires_us) of formals (EF, CF) seen again. Unknown ids are ignored."""
    positions: Sequence[FormalPosition] = ()
    """Positions only grow: a lower one than stored is ignored."""
    lines: Sequence[Line] | None = None
    """The server's lines from now on (all of them), or None for no change."""
    servers: Sequence[ServerInfo] | None = None
    """Where other servers were last known to be, or None for no change."""
    notes: Mapping[str, bytes | None] = field(default_factory=dict)
    """Small named facts of the server's own: written, or with None forgotten."""
    revealed: Sequence[bytes] = ()
    """Moves whose shadows count from now on. Unknown ones are ignored."""
    dropped: Sequence[bytes] = ()
    """Moves whose shadows, if still hidden, are deleted."""
    removed: Sequence[Section] = ()
    """Sections whose EAs and CFs of every visible origin are deleted (after a drain). Not EFs and CAs."""

    @property
    def is_empty(self) -> bool:
        return not self.events and self.is_only_events

    @property
    def families(self) -> set[Family]:
        """Of its rows."""
        batches = (*self.events, *self.devices)
        named = {family for batch in batches for family in batch.columns.families}
        return named | {kept.packed.family for kept in self.templates}

    @property
    def is_only_events(self) -> bool:
        """Nothing but EAs, if any."""
        return not (
            self.notes
            or self.revealed
            or self.dropped
            or self.removed
            or self.devices
            or self.templates
            or self.cancelled
            or self.renewed
            or self.positions
            or self.lines is not None
            or self.servers is not None
        )


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a starting server has back before it accepts anything. Nothing expired is in it."""

    seq: int = 0
    lines: Sequence[Line] = ()
    servers: Sequence[ServerInfo] = ()
    templates: Sequence[StoredTemplate] = ()
    positions: Sequence[FormalPosition] = ()
    notes: Mapping[str, bytes] = field(default_factory=dict)
    origins: Mapping[str, int] = field(default_factory=dict)
    """See `Store.origins`."""
    held_devices: Mapping[bytes, int] = field(default_factory=dict)
    """CFs that never expire, because their programs were attached when the server ended; with their lifetimes in
    microseconds."""


@dataclass(frozen=True, slots=True)
class Known:
    """A stored EA or CF found again by a retry: enough to tell "same content" from "conflict"."""

    id: bytes
    address: str
    payload: bytes
    reader: str | None = None
    """Of a CF, as it is kept."""


@dataclass(frozen=True, slots=True)
class StoreStats:
    events: int = 0
    """EAs, possibly an estimate."""
    devices: int = 0
    size_bytes: int = 0
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class Census:
    """What one section holds here."""

    rows: int = 0
    """Visible EAs and CFs, possibly an estimate."""
    is_empty: bool = True
    """Exactly: no living EA or CF, visible or hidden."""
    is_splittable: bool = False
    """Rows of more than one key."""
    some_key: int | None = None
    """The key of a random stored EA or CF (section 3.6)."""


@dataclass(frozen=True, slots=True)
class RetryKey:
    """Where a retried EA or CF would be, had its first attempt been registered."""

    family: Family
    time_us: int
    id: bytes


@dataclass(frozen=True, slots=True)
class Search:
    """The stored matches of one template: those with after < seq <= upto, alive at now_us, not hidden."""

    template: UTuple
    """An EF to search EAs, or a CA to search CFs."""
    after: int
    upto: int
    now_us: int
    chunk_rows: int = field(default=2_000)
    origin: str = OWN_ORIGIN
    """Whose EAs, in whose seqs. A CA's search finds CFs of every origin: their seqs are this server's."""


Key = tuple[int, bytes]
"""Time in microseconds, then id: the order of a page. It is the same on every server, whoever has the row."""


@dataclass(frozen=True, slots=True)
class Page:
    """The first stored matches of an EF in order of time and id, or from the newest down: of every origin, alive at
    now_us, not hidden."""

    template: UTuple
    rows: int
    newest_first: bool
    after: Key | None
    """What comes after this in that order; None: from the beginning."""
    now_us: int


OnSearch = Callable[[Hashable, float], None]
"""For whom, and how long: in seconds of all the searching the store does at once."""


def nobody_asks(who: Hashable, seconds: float) -> None:
    """How long searches take."""


class Store(Protocol):
    on_search: OnSearch
    """Told of each search, or part of one: when it is done, how long it kept the database busy. `who` is the family, if
    it was for one. Upkeep does not count."""

    async def open(self, name: str, now_us: int) -> Recovered:
        """Take the store for this process alone, fence off a predecessor's backends, bring the schema
        up to date and give back what is there. A store belongs to the server of one name; another name
        is refused (StoreRefused). Opening again after StoreUnavailable reconnects."""

    async def commit(self, transaction: Transaction) -> None:
        """Durably. Raises StoreUnavailable; `maybe_committed` is False only if it surely was not."""

    def is_held(self) -> bool:
        """Is the store still this process's own, as far as that is known without asking the database? False as soon as the
        connection that holds it has ended, since another process may have taken it then; also when in doubt."""

    def make_ready(self, transaction: Transaction) -> None:
        """It will be committed next, after the one that is under way: what can be made of it by then is made now.
        Nothing has happened by that, and it may never be committed."""

    def search(self, search: Search) -> AsyncGenerator[Batch, None]:
        """Matches in seq order, in chunks of at most `chunk_rows`. Exactly those `matches` accepts. EAs come without their
        expiry."""

    def page(self, page: Page) -> AsyncGenerator[Columns, None]:
        """Its rows in its order, in chunks. What is there twice comes twice and counts twice. Finds them without looking at
        all that match."""

    async def count(self, search: Search, most: int) -> int | None:
        """How many matches there are, counted up to `most`; None if counting takes long."""

    async def known_events(self, keys: Sequence[RetryKey]) -> dict[bytes, Known]:
        """Those of these retries that are stored as EAs, hidden or not, by id."""

    async def known_devices(self, ids: Sequence[bytes]) -> dict[bytes, Known]:
        """Those of these that are stored as CFs, by id."""

    def devices(
        self, now_us: int, ids: Sequence[bytes] | None = None
    ) -> AsyncGenerator[Batch, None]:
        """Every living CF that is not hidden (or those with these ids), in chunks."""

    def section_events(
        self, section: Section, origin: str, after: int, now_us: int
    ) -> AsyncGenerator[Batch, None]:
        """Every living EA of the section and origin with seq > after, not hidden, in seq order, in
        chunks: what a drain brings elsewhere."""

    def section_devices(self, section: Section, now_us: int) -> AsyncGenerator[Batch, None]:
        """Every living CF of the section, not hidden, in chunks."""

    async def origins(self) -> dict[str, int]:
        """Other servers whose EAs are here and not hidden, with the highest seq of each."""

    async def shadows(self, move: bytes) -> dict[str, int]:
        """How far a move's hidden EAs have come: the highest seq of each origin (OWN_ORIGIN never)."""

    async def census(self, sections: Sequence[Section], now_us: int) -> list[Census]:
        """What each section holds. Cheap enough to ask every half minute, whatever is stored."""

    async def collect(self, now_us: int) -> int:
        """Drop what has expired: whole partitions of EAs, and dead CFs, EFs, CAs with their positions.
        Returns how many partitions went. Never disturbs readers or the writer for long."""

    async def stats(self) -> StoreStats:
        """Cheap enough to ask every few seconds."""

    async def close(self) -> None:
        """Give the store free."""
