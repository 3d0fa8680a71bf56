"""The PostgreSQL store: order and failure; the statements are in the modules beside.

The writer's connection is used by one task at a time. When it is lost, or its state is in doubt, it is thrown away:
everything then raises StoreUnavailable until `open` is called again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import psycopg

from utuple.errors import UTupleError
from utuple.model.columns import Columns
from utuple.model.section import Section
from utuple.model.utuple import Family, Kind
from utuple.store.contract import (
    NO_ROWS,
    Batch,
    Census,
    Known,
    OnSearch,
    Page,
    Recovered,
    RetryKey,
    Search,
    StoreStats,
    StoreUnavailable,
    Transaction,
    nobody_asks,
)
from utuple.store.postgres import origins
from utuple.store.postgres.collection import delete_dead
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.families import Families
from utuple.store.postgres.migrations import migrate
from utuple.store.postgres.partitions import Partitions
from utuple.store.postgres.recovery import recover
from utuple.store.postgres.searching import conditions, lookup, sections
from utuple.store.postgres.searching.census import take_census
from utuple.store.postgres.searching.paging import read_page
from utuple.store.postgres.searching.portals import ReaderPool, count_few, read_few, read_on
from utuple.store.postgres.searching.prepared import by_column
from utuple.store.postgres.session import LOCK_KEY, Sessions, rolled_back, unavailable
from utuple.store.postgres.statements import Statement, compiled
from utuple.store.postgres.writing.copy import LeafCopy, copies_of
from utuple.store.postgres.writing.insert import Inserter, SmallInsert, small_insert_of
from utuple.store.postgres.writing.removal import RemovedRows, drop_shadows, remove_sections
from utuple.store.postgres.writing.transaction import copy_events, note_seq, write_rest
from utuple.store.turns import Lane

COMMIT_LIMIT_S = 60.0
"""PostgreSQL that takes longer is stuck: the outcome is unknown, and a new connection is due."""
REMOVAL_LIMIT_S = 600.0
"""The same for a commit that deletes what a move has taken away: some seconds for a million rows."""
DEVICES_CHUNK_ROWS = 2_000


@dataclass(slots=True)
class _Writer:
    """The writer's connection in one task's hands."""

    connection: Connection
    inserter: Inserter
    is_committing: bool = False
    """COMMIT is on its way: from now on a lost connection leaves the outcome unknown."""


class _WriterLease:
    """The writer's connection for one task at a time; what breaks it is told in our own words."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._use: _Writer | None = None

    async def __aenter__(self) -> _Writer:
        store = self._store
        await store._one_writes.acquire()
        if store._writer is None or store._inserter is None:
            store._one_writes.release()
            raise StoreUnavailable("the store is not open: open it again")
        self._use = _Writer(store._writer, store._inserter)
        return self._use

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        assert self._use is not None
        try:
            if isinstance(error, psycopg.Error | TimeoutError):
                raise await self._store._failure(self._use, error) from error
            if error is not None:
                await self._store._throw_away(self._use.connection)
        finally:
            self._store._one_writes.release()


class PostgresStore:
    def __init__(self, dsn: str, *, unsafe: bool = False, create: bool = False) -> None:
        self._dsn = dsn
        self._create, self._unsafe = create, unsafe
        self._sessions = Sessions(dsn, secrets.token_hex(4))
        self._writer: Connection | None = None
        self._inserter: Inserter | None = None
        self._readers: ReaderPool | None = None
        self._families = Families()
        self._partitions = Partitions()
        self._one_writes = asyncio.Lock()
        self._ready: tuple[Transaction, list[LeafCopy]] | None = None
        self.on_search: OnSearch = nobody_asks
        self._seq = self._latest_us = 0
        """The last commit; and the time as last heard of, good enough to choose a leaf by."""

    # --- life ------------------------------------------------------------------------------------

    async def open(self, name: str, now_us: int) -> Recovered:
        await self.close()
        writer = await self._sessions.open_writer(name, unsafe=self._unsafe, create=self._create)
        try:
            await migrate(writer, name)
            await self._partitions.load(writer)
            recovered = await recover(writer, now_us)
        except psycopg.Error as error:
            await writer.close()
            raise unavailable(error, self._dsn) from error
        except BaseException:
            await writer.close()
            raise
        self._create = False  # what is gone when it is opened again was lost, and not new
        self._families = Families()
        self._latest_us, self._seq = now_us, recovered.seq
        self._writer, self._inserter = writer, Inserter(writer)
        self._readers = ReaderPool(lambda: self._sessions.connect_reader(name), self.on_search)
        return recovered

    async def close(self) -> None:
        readers, self._readers = self._readers, None
        if readers is not None:
            await readers.close()
        async with self._one_writes:
            writer, self._writer = self._writer, None
            if writer is not None:
                with suppress(psycopg.Error):  # closing gives the lock free too, a moment later
                    await writer.execute("SELECT pg_advisory_unlock(%s)", (LOCK_KEY,))
                await writer.close()

    def is_held(self) -> bool:
        """The lock lasts as long as the writer's connection. Whoever uses that just now will notice its end."""
        writer = self._writer
        return writer is not None and (self._one_writes.locked() or not writer.has_word)

    # --- writing ---------------------------------------------------------------------------------

    def make_ready(self, transaction: Transaction) -> None:
        """The bytes of its EAs: PostgreSQL would wait for them. Only if nothing comes before them."""
        known = self._families.known
        is_first = not (
            transaction.removed or transaction.dropped or origins.origins_of(transaction)
        )
        if is_first and transaction.events and known.keys() >= transaction.families:
            pieces = copies_of(transaction, known, {}, self._latest_us)
            made = [LeafCopy(piece.leaf, piece.rows, iter([*piece.slices])) for piece in pieces]
            self._ready = (transaction, made)

    async def commit(self, transaction: Transaction) -> None:
        few = small_insert_of(transaction, self._families.known)
        async with _WriterLease(self) as use:
            try:
                if few is not None and self._partitions.hold(few.leaf):
                    await self._insert(use, few)
                else:
                    is_removal = transaction.removed or transaction.dropped
                    async with asyncio.timeout(REMOVAL_LIMIT_S if is_removal else COMMIT_LIMIT_S):
                        await self._commit(use, transaction)
                self._seq = transaction.seq
            finally:
                self._partitions.release()

    async def _insert(self, use: _Writer, few: SmallInsert) -> None:
        await use.inserter.prepare(few.leaf, COMMIT_LIMIT_S)
        use.is_committing = True
        await use.inserter.insert(few, COMMIT_LIMIT_S)
        self._partitions.committed({few.leaf: few.rows})

    async def _commit(self, use: _Writer, transaction: Transaction) -> None:
        writer = use.connection
        ready, self._ready = self._ready, None
        pieces = ready[1] if ready is not None and ready[0] is transaction else None
        begins = pieces is not None and self._partitions.hold_each(one.leaf for one in pieces)
        if not begins:
            await writer.execute("BEGIN")
        ids = await self._families.find_or_add(writer, transaction.families)
        gone = await self._remove(writer, transaction)
        numbers = await origins.find_or_add(writer, origins.origins_of(transaction))
        if pieces is None:
            pieces = copies_of(transaction, ids, numbers, self._latest_us)
        if pieces:
            await self._partitions.make(writer, [piece.leaf for piece in pieces])
            await copy_events(writer, pieces, begins=begins)
        await write_rest(writer, transaction, ids, numbers)
        use.is_committing = True
        await writer.execute(note_seq(transaction.seq) + b"; COMMIT", prepare=False)
        self._families.remember(ids)
        self._partitions.committed({piece.leaf: piece.rows for piece in pieces}, gone)

    async def _remove(self, writer: Connection, transaction: Transaction) -> RemovedRows:
        gone: RemovedRows = RemovedRows()
        if transaction.removed or transaction.dropped:
            self._partitions.hold_all()
        if transaction.removed:
            gone += await remove_sections(writer, transaction.removed)
        if transaction.dropped:
            gone += await drop_shadows(writer, transaction.dropped)
        return gone

    async def _failure(self, use: _Writer, error: Exception) -> UTupleError:
        """If the connection can still roll back, PostgreSQL has answered: nothing was stored."""
        is_alive = isinstance(error, psycopg.Error) and await rolled_back(use.connection)
        if is_alive and not isinstance(error, psycopg.OperationalError):
            return UTupleError(f"PostgreSQL refused this, and nothing of it is stored: {error}")
        await self._throw_away(use.connection)
        maybe_committed = use.is_committing and not is_alive
        return unavailable(error, self._dsn, maybe_committed=maybe_committed)

    async def _throw_away(self, writer: Connection) -> None:
        if self._writer is writer:
            self._writer = None
        await writer.close()

    # --- reading ---------------------------------------------------------------------------------

    async def search(self, search: Search) -> AsyncGenerator[Batch, None]:
        """Most find few rows at once, in one round trip. Else a portal is opened and all of them are its own, as nothing
        holds what was read until then."""
        few = await self._find_few(search)
        if few is not None:
            if few:
                yield few
            return
        readers = self._open_readers()
        with self._reading():
            family = await self._number_of(readers, search.template.family)
            if family is None:
                return

            def after(seq: int) -> Statement:
                return _question(search, family, seq)

            asked = (readers, after, search.after, search.chunk_rows)
            async with aclosing(read_on(*asked, who=search.template.family)) as pieces:
                async for piece in pieces:
                    found = lookup.batch_of_search(search, by_column(piece))
                    matching = lookup.matching(search.template, found)
                    if matching is not None:
                        yield matching

    async def _find_few(self, search: Search) -> Batch | None:
        readers, most = self._open_readers(), search.chunk_rows
        with self._reading():
            family = await self._number_of(readers, search.template.family)
            if family is None:
                return NO_ROWS
            asked = _question(search, family, search.after, most)
            few = await read_few(readers, asked, most, search.template.family)
        if not few:
            return None if few is None else NO_ROWS
        return lookup.matching(search.template, lookup.batch_of_search(search, few)) or NO_ROWS

    async def count(self, search: Search, most: int) -> int | None:
        readers, family = self._open_readers(), search.template.family
        with self._reading():
            number = await self._number_of(readers, family)
            asked = _question(search, number or 0, search.after, most)
            return 0 if number is None else await count_few(readers, asked, family)

    async def page(self, page: Page) -> AsyncGenerator[Columns, None]:
        readers = self._open_readers()
        with self._reading():
            family = await self._number_of(readers, page.template.family)
            if family is None:
                return
            async with aclosing(read_page(readers, page, family)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _number_of(self, readers: ReaderPool, family: Family) -> int | None:
        number = self._families.known.get(family)
        if number is None:
            async with readers.connection(Lane.SHORT, family) as connection:
                number = (await self._families.find(connection, [family])).get(family)
        return number

    async def known_events(self, keys: Sequence[RetryKey]) -> dict[bytes, Known]:
        async with _WriterLease(self) as use, asyncio.timeout(COMMIT_LIMIT_S):
            asked = {key.family for key in keys}
            ids = await self._families.find(use.connection, asked)
            return await lookup.known_events(use.connection, keys, ids)

    async def known_devices(self, ids: Sequence[bytes]) -> dict[bytes, Known]:
        async with _WriterLease(self) as use, asyncio.timeout(COMMIT_LIMIT_S):
            return await lookup.known_devices(use.connection, ids)

    async def devices(
        self, now_us: int, ids: Sequence[bytes] | None = None
    ) -> AsyncGenerator[Batch, None]:
        def after(seq: int) -> Statement:
            if ids is None:
                return compiled(lookup.living_devices(now_us, seq))
            return lookup.devices_with(ids, now_us, seq)

        async with aclosing(self._devices(after, int(ids is None))) as found:
            async for batch in found:
                yield batch

    async def section_devices(self, section: Section, now_us: int) -> AsyncGenerator[Batch, None]:
        async with aclosing(self._devices(partial(lookup.devices_in, section, now_us))) as found:
            async for batch in found:
                yield batch

    async def _devices(
        self, statement_after: Callable[[int], Statement], broken_off: int = 1
    ) -> AsyncGenerator[Batch, None]:
        asked = (self._open_readers(), statement_after, -1, DEVICES_CHUNK_ROWS)
        reading = read_on(*asked, who="devices", broken_off=broken_off)
        with self._reading():
            async with aclosing(reading) as pieces:
                async for piece in pieces:
                    yield lookup.batch_of_families(Kind.CF, piece)

    async def section_events(
        self, section: Section, origin: str, after: int, now_us: int
    ) -> AsyncGenerator[Batch, None]:
        asked = (section, origin, after, self._seq, now_us)
        with self._reading():
            async with aclosing(sections.read_events(self._open_readers(), *asked)) as pieces:
                async for piece in pieces:
                    yield lookup.batch_of_families(Kind.EA, piece, origin)

    async def origins(self) -> dict[str, int]:
        with self._reading():
            async with self._open_readers().connection() as connection:
                return await origins.furthest(connection)

    async def shadows(self, move: bytes) -> dict[str, int]:
        with self._reading():
            async with self._open_readers().connection() as connection:
                return await origins.furthest(connection, move)

    async def census(self, sections: Sequence[Section], now_us: int) -> list[Census]:
        with self._reading():
            async with self._open_readers().connection() as connection:
                return await take_census(connection, sections, now_us)

    async def stats(self) -> StoreStats:
        with self._reading():
            async with self._open_readers().connection() as connection:
                devices, size_bytes = await lookup.devices_and_bytes(connection)
        held = self._partitions
        return StoreStats(held.rows, devices, size_bytes, held.count)

    def _open_readers(self) -> ReaderPool:
        if self._readers is None or self._writer is None:
            raise StoreUnavailable("the store is not open: open it again")
        return self._readers

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise unavailable(error, self._dsn) from error

    # --- collecting ------------------------------------------------------------------------------

    async def collect(self, now_us: int) -> int:
        gone = 0
        self._latest_us = now_us
        with self._reading():
            async with self._open_readers().connection() as connection:
                for leaf in self._partitions.expired(now_us):
                    gone += await self._partitions.drop(connection, leaf)
                await delete_dead(connection, now_us)
                are_over = await origins.are_any_empty(connection)
        if are_over:
            async with _WriterLease(self) as use, asyncio.timeout(COMMIT_LIMIT_S):
                await origins.forget_empty(use.connection)
        return gone


def _question(search: Search, family: int, after: int, few: int | None = None) -> Statement:
    asked = (after, search.upto, search.now_us, search.origin)
    return conditions.question(search.template, family, *asked, few)
