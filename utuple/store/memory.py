"""The plain twin of the PostgreSQL store: dictionaries, and `matches` for every search.

It outlives the "process" that used it: hand the same object to the next server, which opens it again.
It can be told to fail, so that a server's conduct at a lost commit is tested without a database.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from utuple.cluster.line import Line, ServerInfo
from utuple.model.columns import NEVER_US, Columns, concatenate, lifetime_us
from utuple.model.key import key_of
from utuple.model.match import matches
from utuple.model.section import Section
from utuple.model.utuple import Exact, Kind, UTuple
from utuple.store.contract import (
    OWN_ORIGIN,
    Batch,
    Census,
    FormalPosition,
    Key,
    Known,
    OnSearch,
    Page,
    Recovered,
    RetryKey,
    Search,
    StoredTemplate,
    StoreRefused,
    StoreStats,
    StoreUnavailable,
    Transaction,
    nobody_asks,
)

_CHUNK_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class _Row:
    """One EA or CF: a batch of one."""

    columns: Columns
    utuple: UTuple
    seq: int
    expires_us: int
    origin: str
    shadow: bytes
    """The move that brought it, while it is hidden."""

    @property
    def key(self) -> int:
        return key_of(*self.utuple.family)


class MemoryStore:
    def __init__(self) -> None:
        self._name: str | None = None
        self._is_open = False
        self._failure: StoreUnavailable | None = None
        self._failing_is_stored = False
        self._seq = 0
        self._events: list[_Row] = []
        self._devices: dict[bytes, _Row] = {}
        self._templates: dict[bytes, StoredTemplate] = {}
        self._positions: dict[tuple[bytes, str], int] = {}
        self._lines: tuple[Line, ...] = ()
        self._servers: tuple[ServerInfo, ...] = ()
        self._notes: dict[str, bytes] = {}
        self._dice = random.Random(0)  # a run from a seed stays one
        self.on_search: OnSearch = nobody_asks

    def fail_next_commit(self, *, maybe_committed: bool, stored: bool = False) -> None:
        """The next commit raises StoreUnavailable, having `stored` all of the transaction or nothing;
        then the store must be opened again. What surely was not committed cannot be stored."""
        assert maybe_committed or not stored
        self._failure = StoreUnavailable("told to fail", maybe_committed=maybe_committed)
        self._failing_is_stored = stored

    async def open(self, name: str, now_us: int) -> Recovered:
        if self._name not in (None, name):
            raise StoreRefused(f"this store belongs to server {self._name!r}, not to {name!r}")
        self._name = name
        self._is_open = True
        templates = [kept for kept in self._templates.values() if kept.expires_us > now_us]
        living = {kept.packed.id for kept in templates} | {
            id_ for id_, row in self._devices.items() if row.expires_us > now_us
        }
        return Recovered(
            self._seq,
            self._lines,
            self._servers,
            tuple(sorted(templates, key=lambda kept: (kept.seq, kept.packed.id))),
            tuple(
                FormalPosition(formal, origin, seq)
                for (formal, origin), seq in sorted(self._positions.items())
                if formal in living
            ),
            dict(sorted(self._notes.items())),
            self._furthest(shadow=b""),
            {
                id_: lifetime_us(row.utuple.lifetime_s)
                for id_, row in self._devices.items()
                if row.expires_us == NEVER_US
            },
        )

    def is_held(self) -> bool:
        return self._is_open

    def make_ready(self, transaction: Transaction) -> None:
        """There is nothing to make."""

    async def commit(self, transaction: Transaction) -> None:
        self._check_open()
        failure, self._failure = self._failure, None
        if failure is None or self._failing_is_stored:
            self._apply(transaction)
        if failure is not None:
            self._is_open = False
            raise failure

    def _apply(self, transaction: Transaction) -> None:
        self._delete(transaction)
        for id_ in transaction.cancelled:
            self._forget(id_)
        for batch in transaction.events:
            assert batch.origin or not batch.shadow, "no move brings a server its own EAs"
            self._events.extend(_without_lifetime(row) for row in _rows(batch, Kind.EA))
        for batch in sorted(transaction.devices, key=lambda batch: bool(batch.shadow)):
            for row in _rows(batch, Kind.CF):
                self._keep_device(row)
        for kept in transaction.templates:
            self._templates[kept.packed.id] = kept
        for id_, expires_us in transaction.renewed:
            self._renew(id_, expires_us)
        for position in transaction.positions:
            if position.formal in self._templates or position.formal in self._devices:
                at = (position.formal, position.origin)
                self._positions[at] = max(position.seq, self._positions.get(at, 0))
        if transaction.lines is not None:
            self._lines = tuple(sorted(transaction.lines, key=lambda line: line.section))
        if transaction.servers is not None:
            self._servers = tuple(sorted(transaction.servers, key=lambda server: server.name))
        for name, body in transaction.notes.items():
            self._notes.pop(name, None)
            if body is not None:
                self._notes[name] = body
        self._reveal(set(transaction.revealed))
        self._seq = transaction.seq

    def _delete(self, transaction: Transaction) -> None:
        def is_gone(row: _Row) -> bool:
            if row.shadow:
                return row.shadow in transaction.dropped
            return any(row.key in section for section in transaction.removed)

        if transaction.dropped or transaction.removed:
            self._events = [row for row in self._events if not is_gone(row)]
            for id_ in [id_ for id_, row in self._devices.items() if is_gone(row)]:
                self._forget(id_)

    def _keep_device(self, row: _Row) -> None:
        """A shadow never hides a CF that is visible here; it may know of a later renewal of it."""
        there = self._devices.get(row.utuple.id)
        if row.shadow and there is not None and not there.shadow:
            row = replace(there, expires_us=max(there.expires_us, row.expires_us))
        self._devices[row.utuple.id] = row

    def _reveal(self, moves: set[bytes]) -> None:
        def seen(row: _Row) -> _Row:
            return replace(row, shadow=b"") if row.shadow in moves else row

        if moves:
            self._events = [seen(row) for row in self._events]
            self._devices = {id_: seen(row) for id_, row in self._devices.items()}

    def _renew(self, id_: bytes, expires_us: int) -> None:
        if id_ in self._templates:
            self._templates[id_] = self._templates[id_]._replace(expires_us=expires_us)
        if id_ in self._devices:
            self._devices[id_] = replace(self._devices[id_], expires_us=expires_us)

    def _forget(self, id_: bytes) -> None:
        self._templates.pop(id_, None)
        self._devices.pop(id_, None)
        for at in [at for at in self._positions if at[0] == id_]:
            del self._positions[at]

    async def search(self, search: Search) -> AsyncGenerator[Batch, None]:
        self._check_open()
        template = search.template
        for_events = template.kind is Kind.EF
        rows = self._events if for_events else list(self._devices.values())

        def wanted(row: _Row) -> bool:
            pair = (row.utuple, template) if for_events else (template, row.utuple)
            return (
                search.after < row.seq <= search.upto
                and row.expires_us > search.now_us
                and not row.shadow
                and (row.origin == search.origin or not for_events)
                and matches(*pair)
            )

        origin = search.origin if for_events else OWN_ORIGIN
        for chunk in _chunks(filter(wanted, rows), search.chunk_rows, origin):
            yield replace(chunk, expires_us=array("q")) if for_events else chunk

    async def count(self, search: Search, most: int) -> int | None:
        return min(most, sum([len(batch) async for batch in self.search(search)]))

    async def page(self, page: Page) -> AsyncGenerator[Columns, None]:
        self._check_open()

        def key(row: _Row) -> Key:
            assert isinstance(row.utuple.metadata, Exact)
            return row.utuple.metadata.time_us, row.utuple.id

        def wanted(row: _Row) -> bool:
            is_living = row.expires_us > page.now_us and not row.shadow
            return is_living and matches(row.utuple, page.template)

        found = sorted(filter(wanted, self._events), key=key, reverse=page.newest_first)
        if page.after is not None:
            after = page.after
            found = [
                row
                for row in found
                if key(row) != after and (key(row) < after) == page.newest_first
            ]
        for start in range(0, min(len(found), page.rows), _CHUNK_ROWS):
            part = found[start : min(start + _CHUNK_ROWS, page.rows)]
            yield concatenate([row.columns for row in part])

    async def known_events(self, keys: Sequence[RetryKey]) -> dict[bytes, Known]:
        self._check_open()
        asked = {(key.family, key.time_us, key.id) for key in keys}
        return {
            row.utuple.id: _known(row)
            for row in self._events
            if (row.utuple.family, row.columns.times_us[0], row.utuple.id) in asked
        }

    async def known_devices(self, ids: Sequence[bytes]) -> dict[bytes, Known]:
        self._check_open()
        return {id_: _known(self._devices[id_]) for id_ in ids if id_ in self._devices}

    async def devices(
        self, now_us: int, ids: Sequence[bytes] | None = None
    ) -> AsyncGenerator[Batch, None]:
        self._check_open()
        asked = None if ids is None else set(ids)

        def wanted(row: _Row) -> bool:
            is_asked = asked is None or row.utuple.id in asked
            return is_asked and row.expires_us > now_us and not row.shadow

        for chunk in _chunks(filter(wanted, self._devices.values()), _CHUNK_ROWS):
            yield chunk

    async def section_events(
        self, section: Section, origin: str, after: int, now_us: int
    ) -> AsyncGenerator[Batch, None]:
        self._check_open()
        living = _living_in(section, self._events, now_us)
        wanted = [row for row in living if row.origin == origin and row.seq > after]
        for chunk in _chunks(wanted, _CHUNK_ROWS, origin):
            yield chunk

    async def section_devices(self, section: Section, now_us: int) -> AsyncGenerator[Batch, None]:
        self._check_open()
        for chunk in _chunks(_living_in(section, self._devices.values(), now_us), _CHUNK_ROWS):
            yield chunk

    async def origins(self) -> dict[str, int]:
        self._check_open()
        return self._furthest(shadow=b"")

    async def shadows(self, move: bytes) -> dict[str, int]:
        self._check_open()
        return self._furthest(shadow=move)

    def _furthest(self, shadow: bytes) -> dict[str, int]:
        furthest: dict[str, int] = {}
        for row in self._events:
            if row.origin != OWN_ORIGIN and row.shadow == shadow:
                furthest[row.origin] = max(row.seq, furthest.get(row.origin, 0))
        return furthest

    async def census(self, sections: Sequence[Section], now_us: int) -> list[Census]:
        self._check_open()
        rows = [row for row in (*self._events, *self._devices.values()) if row.expires_us > now_us]
        return [self._census(section, rows) for section in sections]

    def _census(self, section: Section, living: Sequence[_Row]) -> Census:
        inside = [row for row in living if row.key in section]
        keys = [row.key for row in inside if not row.shadow]
        some_key = self._dice.choice(keys) if keys else None
        return Census(len(keys), not inside, len(set(keys)) > 1, some_key)

    async def collect(self, now_us: int) -> int:
        self._check_open()
        before = len(self._events)
        self._events = [row for row in self._events if row.expires_us > now_us]
        expiries = [(id_, kept.expires_us) for id_, kept in self._templates.items()]
        expiries += [(id_, row.expires_us) for id_, row in self._devices.items()]
        for id_, expires_us in expiries:
            if expires_us <= now_us:
                self._forget(id_)
        return int(len(self._events) < before)

    async def stats(self) -> StoreStats:
        self._check_open()
        size = sum(len(row.columns.payloads[0]) for row in self._events)
        return StoreStats(len(self._events), len(self._devices), size, int(bool(self._events)))

    async def close(self) -> None:
        self._is_open = False

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreUnavailable("this store is not open")


def _rows(batch: Batch, kind: Kind) -> Iterator[_Row]:
    for row in range(len(batch)):
        one = batch.columns.take([row])
        yield _Row(
            one,
            one.utuple_at(0, kind),
            batch.seqs[row],
            batch.expires_us[row],
            batch.origin,
            batch.shadow,
        )


def _without_lifetime(row: _Row) -> _Row:
    """A stored EA has its expiry and no lifetime: eight bytes a row that nobody would read."""
    return replace(row, columns=replace(row.columns, lifetimes_us=array("q", [0])))


def _living_in(section: Section, rows: Iterable[_Row], now_us: int) -> Iterator[_Row]:
    for row in rows:
        if row.key in section and row.expires_us > now_us and not row.shadow:
            yield row


def _chunks(rows: Iterable[_Row], most: int, origin: str = OWN_ORIGIN) -> Iterator[Batch]:
    found = sorted(rows, key=lambda row: row.seq)
    for start in range(0, len(found), most):
        part = found[start : start + most]
        yield Batch(
            concatenate([row.columns for row in part]),
            array("Q", [row.seq for row in part]),
            array("q", [row.expires_us for row in part]),
            origin,
        )


def _known(row: _Row) -> Known:
    reader = row.columns.readers[0] if row.columns.readers else None
    return Known(row.utuple.id, row.columns.addresses[0], row.columns.payloads[0], reader)
