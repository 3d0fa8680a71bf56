"""Readers that settle each delivery by itself, and share them: seats at one formal.

Such a formal's cursor sends to a stream of its own, which has a number below 0 and no wire; what comes there is distributed over the
streams of its seats as the ledger says. What is due again is read from the store: nothing is kept here but seqs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from utuple.delivery.notice import News, Notice
from utuple.model.key import key_of
from utuple.model.terms import decode_terms
from utuple.model.utuple import Kind
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.server.delivering.cursor import Reading, Sending
from utuple.server.delivering.cursors import Cursors
from utuple.server.delivering.reading.searching import searches
from utuple.server.delivering.sharing.brought import Brought
from utuple.server.delivering.sharing.ledger import Ledger, Place, attempts_of
from utuple.server.delivering.streams import Streams
from utuple.server.ports import DeliveryPort
from utuple.store.contract import Batch, Recovered, StoredTemplate, StoreUnavailable

_log = Log("utuple.server.delivering.sharing.seats")
_NOTE = "ledger/"
MOST_OPEN = 10_000
"""Deliveries of one formal that are not settled, those that wait for their next attempt included. Beyond it nothing more is
handed out until some are."""


@dataclass(eq=False, slots=True)
class Pool:
    formal: bytes
    stream: int
    """Of its cursor, below 0."""
    ledger: Ledger
    timer: asyncio.TimerHandle | None = None
    is_redelivering: bool = False


class Seats:
    def __init__(
        self,
        engine: DeliveryPort,
        cursors: Cursors,
        streams: Streams,
        tasks: Tasks,
    ) -> None:
        self._engine = engine
        self._cursors = cursors
        self._streams = streams
        self._tasks = tasks
        self.acknowledge: Callable[[bytes, str, int], None] = lambda *_: None
        self.save_soon: Callable[[], None] = lambda: None
        """Whom to tell of a formal's new position, and that its ledger is to be noted."""
        self._pools: dict[bytes, Pool] = {}
        self._by_stream: dict[int, Pool] = {}
        streams.distribute = self._distribute
        self._brought = Brought()
        self._gone: dict[str, bytes | None] = {}
        """Notes of ledgers that are others' now."""
        decided = cursors.may_read
        cursors.may_read = lambda formal, origin: (
            decided(formal, origin) and not self._brought.awaits(formal, origin)
        )

    # --- notes -----------------------------------------------------------------------------------

    def take_over(self, recovered: Recovered) -> None:
        """The store was opened (again). What is known here is ahead of it, and is noted anew."""
        known = set(self._pools)
        for held in self._pools.values():
            held.ledger.changed.update(held.ledger.upto)
        self._brought.restore(recovered.notes)
        templates = {stored.packed.id: stored for stored in recovered.templates}
        for name, body in recovered.notes.items():
            if name.startswith(_NOTE):
                _, formal_hex, origin = name.split("/", 2)
                formal = bytes.fromhex(formal_hex)
                stored = templates.get(formal)
                if formal not in known and stored is not None:
                    pool = self.pool_of(stored)
                    if pool is not None:
                        pool.ledger.restore(origin, body)

    def pop_notes(self) -> dict[str, bytes | None]:
        notes, self._gone = self._gone | self._brought.pop_unsaved(), {}
        for formal, pool in self._pools.items():
            for origin in pool.ledger.changed:
                notes[f"{_NOTE}{formal.hex()}/{origin}"] = pool.ledger.encode(origin)
            pool.ledger.changed = set()
        return notes

    def forget(self, formal: bytes) -> dict[str, bytes | None]:
        """The EF is gone; its notes go, too."""
        self._brought.forget(formal)
        notes, pool = self._brought.pop_unsaved(), self._pools.pop(formal, None)
        if pool is None:
            return notes
        del self._by_stream[pool.stream]
        if pool.timer is not None:
            pool.timer.cancel()
        return notes | {f"{_NOTE}{formal.hex()}/{origin}": None for origin in pool.ledger.upto}

    # --- drains ----------------------------------------------------------------------------------

    def named(self, name: str) -> Iterator[tuple[bytes, str, bytes]]:
        """Formals, origins and ledgers, as a drain brings them elsewhere: in this server's name."""
        for formal, pool in self._pools.items():
            for origin in pool.ledger.upto:
                yield formal, origin or name, pool.ledger.encode(origin)

    def _forget_given_away(self) -> None:
        """A section was drained: what was open or parked of it went along."""
        left = self._engine.writer.moves.participant.left
        for pool in self if left else ():
            stored = self._engine.writer.templates.get(pool.formal)
            key = key_of(*stored.packed.family) if stored is not None else None
            if not pool.ledger.seats and any(key in section for section in left if key is not None):
                self._gone |= self.forget(pool.formal)
                self.save_soon()

    def learn(self, came: Iterable[tuple[bytes, str, bytes]], move: str, *, is_last: bool) -> None:
        """What a drain has brought; the last word makes it count."""
        for formal, origin, ledger in came:
            self._brought.learn(formal, origin, move, ledger)
        for formal, origin, ledger in self._brought.ended(move) if is_last else ():
            stored = self._engine.writer.templates.get(formal)
            pool = self.pool_of(stored) if stored is not None else None
            if pool is not None:
                pool.ledger.inherit(origin, ledger)
                cursor = self._cursors.get(formal)
                if cursor is not None:  # what the ledger knows is not found anew
                    upto = pool.ledger.upto[origin]
                    cursor.covered[origin] = max(upto, cursor.covered.get(origin, 0))
                self.settled(pool)

    # --- seats -----------------------------------------------------------------------------------

    def pool_of(self, stored: StoredTemplate) -> Pool | None:
        """Of an EF whose deliveries are settled one by one."""
        half = stored.packed
        if half.kind is not Kind.EF or not half.terms or not decode_terms(half.terms).settles:
            return None
        pool = self._pools.get(half.id)
        if pool is None:
            number = -1 - len(self._by_stream)
            while number in self._by_stream:
                number -= 1
            pool = Pool(half.id, number, Ledger(decode_terms(half.terms)))
            self._pools[half.id] = self._by_stream[number] = pool
            self._cursors.open_stream(number)
        return pool

    def get(self, formal: bytes) -> Pool | None:
        return self._pools.get(formal)

    def __iter__(self) -> Iterator[Pool]:
        return iter(list(self._pools.values()))

    def streams_of(self, stream: int) -> list[int]:
        """Whom a word on this stream is for: itself, or all seats."""
        pool = self._by_stream.get(stream)
        return [stream] if pool is None else list(pool.ledger.seats)

    def seated(self, formal: bytes) -> list[tuple[int, int]]:
        """The streams that share this formal, each with the generation of its opening."""
        pool = self._pools.get(formal)
        seats = pool.ledger.seats if pool is not None else {}
        return [(stream, seat.generation) for stream, seat in seats.items()]

    def formals_on(self, stream: int) -> list[bytes]:
        return [formal for formal, pool in self._pools.items() if stream in pool.ledger.seats]

    def is_seated(self, formal: bytes, stream: int, generation: int) -> bool:
        pool = self._pools.get(formal)
        seat = pool.ledger.seats.get(stream) if pool is not None else None
        return seat is not None and seat.generation == generation

    def is_alone(self, formal: bytes) -> bool:
        return len(self._pools[formal].ledger.seats) == 1

    def sit(self, pool: Pool, stream: int, generation: int) -> None:
        """Who shares sits beside the others; else the others have to go."""
        ledger = pool.ledger
        if not ledger.terms.share:
            for other in [one for one in ledger.seats if one != stream]:
                ledger.leave(other, monotonic_s(), now_us(), orderly=True)
                self._streams.send(other, Notice(News.REPLACED, pool.formal, generation))
        if stream in ledger.seats:
            ledger.leave(stream, monotonic_s(), now_us(), orderly=True)
        ledger.sit(stream, generation)

    def leave(self, formal: bytes, stream: int, *, orderly: bool) -> bool:
        """True if nobody is left."""
        pool = self._pools.get(formal)
        if pool is None:
            return True
        pool.ledger.leave(stream, monotonic_s(), now_us(), orderly=orderly)
        self.settled(pool)
        return not pool.ledger.seats

    def settled(self, pool: Pool) -> None:
        """Something has changed: positions advance, the cursor has room, what is due is read."""
        ledger = pool.ledger
        for origin in ledger.changed:
            self.acknowledge(pool.formal, origin, ledger.position(origin))
        if ledger.changed:
            self.save_soon()
        held = sum(len(seat.held) for seat in ledger.seats.values())
        waiting = sum(len(seqs) for seqs in ledger.due(monotonic_s()).values())
        is_full = len(ledger.open) >= MOST_OPEN
        self._cursors.resize(
            pool.formal, ledger.window, ledger.window if is_full else held + waiting
        )
        self._redeliver_soon(pool)

    def tick(self) -> None:
        self._forget_given_away()
        for pool in self:
            is_late = pool.ledger.tick(monotonic_s(), now_us())
            if is_late or pool.ledger.next_due_s() is not None:
                self.settled(pool)

    # --- what seats say --------------------------------------------------------------------------

    def begun(self, formal: bytes, stream: int, count: int) -> None:
        pool = self._pools[formal]
        if pool.ledger.begin(stream, count, monotonic_s()):
            self.settled(pool)

    def settle(
        self,
        stream: int,
        formal: bytes,
        origin: str,
        done: Iterable[int],
        refused: Iterable[int],
        after_s: float,
    ) -> None:
        pool = self._pools.get(formal)
        if pool is None or stream not in pool.ledger.seats:
            return  # it has gone, and what it had was given to others
        pool.ledger.settle(origin, done, monotonic_s())
        pool.ledger.refuse(stream, origin, refused, after_s, monotonic_s(), now_us())
        self.settled(pool)

    def unpark(self, formal: bytes, places: Iterable[Place], *, again: bool) -> int:
        pool = self._pools.get(formal)
        if pool is None:
            return 0
        found = pool.ledger.unpark(places, monotonic_s(), again=again)
        self.settled(pool)
        return len(found)

    # --- what they are given ---------------------------------------------------------------------

    def _distribute(self, sending: Sending) -> list[Sending]:
        """What the cursor sends, for the first time."""
        pool = self._by_stream.get(sending.stream)
        if pool is None:
            return []
        self._cursors.written(sending.stream, len(sending.rows), sending.weight_bytes)
        if sending.batch.is_fleeting:
            addresses = [sending.batch.columns.addresses[row] for row in sending.rows]
            given = pool.ledger.assign_fleeting(addresses)
            return _sendings(pool, sending.batch, sending.rows, given, sending.stored)
        return self._assigned(pool, sending.batch, sending.rows, sending.stored, 0)

    def _assigned(
        self, pool: Pool, batch: Batch, rows: Iterable[int], stored: bool, attempts: int
    ) -> list[Sending]:
        chosen, columns = list(rows), batch.columns
        asked = [(batch.seqs[row], columns.addresses[row]) for row in chosen]
        given = pool.ledger.assign(batch.origin, asked, monotonic_s())
        return _sendings(pool, batch, chosen, given, stored, attempts)

    def _redeliver_soon(self, pool: Pool) -> None:
        """When the next one is due, if somebody is there."""
        due_s = pool.ledger.next_due_s() if pool.ledger.seats else None
        if pool.timer is not None:
            pool.timer.cancel()
            pool.timer = None
        if due_s is None or pool.is_redelivering or not pool.ledger.seats:
            return
        wait_s = max(0.0, due_s - monotonic_s())
        pool.timer = asyncio.get_running_loop().call_later(wait_s, self._redeliver, pool)

    def _redeliver(self, pool: Pool) -> None:
        pool.timer = None
        if pool.ledger.due(monotonic_s()) and not pool.is_redelivering and self._engine.is_serving:
            pool.is_redelivering = True
            self._tasks.start(self._read_again(pool), "redelivery")

    async def _read_again(self, pool: Pool) -> None:
        try:
            stored = self._engine.writer.templates.get(pool.formal)
            for origin, seqs in pool.ledger.due(monotonic_s()).items():
                if stored is not None:
                    await self._read_due(pool, stored, origin, set(seqs))
        except StoreUnavailable as error:
            _log.warning("redelivery broken off", reason=error)
            await asyncio.sleep(self._engine.config.reopen_s)
        finally:
            pool.is_redelivering = False
        if pool.formal in self._pools:
            self.settled(pool)

    async def _read_due(
        self, pool: Pool, stored: StoredTemplate, origin: str, due: set[int]
    ) -> None:
        reading = Reading(pool.formal, min(due) - 1, max(due), origin)
        for search in searches(reading, stored, now_us(), self._engine.config.late_s):
            async with aclosing(self._engine.store.search(search)) as found:
                async for batch in found:
                    rows = [row for row, seq in enumerate(batch.seqs) if seq in due]
                    due.difference_update(batch.seqs[row] for row in rows)
                    self._send_again(pool, batch, rows)
        pool.ledger.settle(origin, due, monotonic_s())  # they have expired meanwhile

    def _send_again(self, pool: Pool, batch: Batch, rows: list[int]) -> None:
        """Those that are still due: somebody may have acknowledged one late."""
        is_due = {(batch.origin, batch.seqs[row]) for row in rows} & pool.ledger.open.keys()
        rows = [
            row
            for row in rows
            if (batch.origin, batch.seqs[row]) in is_due
            and pool.ledger.open[batch.origin, batch.seqs[row]].seat is None
        ]
        seqs = [batch.seqs[row] for row in rows]
        for attempts, numbers in attempts_of(pool.ledger, batch.origin, seqs).items():
            own = [rows[number] for number in numbers]
            self._streams.send_all(self._assigned(pool, batch, own, True, attempts))


def _sendings(
    pool: Pool,
    batch: Batch,
    rows: Sequence[int],
    given: Mapping[int, Sequence[int]],
    stored: bool,
    attempts: int = 0,
) -> list[Sending]:
    """Of these rows, by their number, what each stream was given."""
    found = []
    for stream, numbers in given.items():
        own = [rows[number] for number in numbers]
        formals, counts = [pool.formal], [len(own)]
        found.append(Sending(stream, batch, own, formals, counts, stored, attempts=attempts))
    return found
