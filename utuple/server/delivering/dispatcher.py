"""The dispatcher: carries out what the cursors decide. It has the readers' streams, and tells readers of new lines.

After each commit `committed` is called in the writer's order, so what leaves here is always durable. Nothing here waits for a
reader: what a stream has no room for stays in its outbox, within the cursors' limits; beyond these its cursors fall behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from utuple.cluster.line import Line
from utuple.cluster.table import Table
from utuple.delivery.attachments import Attachments
from utuple.delivery.notice import News, Notice
from utuple.errors import NotRegistered, OutcomeUnknown
from utuple.model.columns import NEVER_US, lifetime_us
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Family, Kind
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.security.identity import Identity
from utuple.security.rights import Verdict
from utuple.server.delivering.absent.away import AwayReaders
from utuple.server.delivering.chores import Chores
from utuple.server.delivering.commands import CommandDispatcher
from utuple.server.delivering.cursor import Limits
from utuple.server.delivering.cursors import Cursors
from utuple.server.delivering.devices import device_at
from utuple.server.delivering.fleeting import FleetingMatches
from utuple.server.delivering.outbox import Outbox, Outgoing
from utuple.server.delivering.reading.searching import StoredSearches
from utuple.server.delivering.rights import StreamRights
from utuple.server.delivering.sharing.seats import Seats
from utuple.server.delivering.streams import Streams
from utuple.server.ports import DeliveryPort, WriterCore
from utuple.server.writing.request import Request
from utuple.server.writing.transaction import PreparedBatch
from utuple.store.contract import Recovered

_log = Log("utuple.server.delivering.dispatcher")


class Dispatcher:
    def __init__(self, engine: DeliveryPort) -> None:
        self._engine = engine
        c = engine.config
        limits = Limits(c.max_stream_bytes, c.max_pending_bytes, c.max_all_pending_bytes)
        self.cursors = Cursors(0, c.max_stream_rows, limits)
        self._fleeting = FleetingMatches(c.passing_s, c.max_passing_rows, c.max_passing_bytes)
        self.tasks = Tasks()
        self._streams = Streams()
        self.commands = CommandDispatcher(engine, self.cursors, self.tasks, self._send)
        self.devices = self.commands.devices
        self.attached: Attachments[int] = Attachments()
        """Formals and CFs whose readers are here, each on its stream."""
        self.searches = StoredSearches(
            engine, self.cursors, self._fleeting, self.tasks, self._streams.send_all
        )
        self.away = AwayReaders(engine, self.cursors, self.attached, self.tasks, self._send)
        absences = self.away.absences
        self.cursors.sift, self.cursors.may_read = absences.kept, absences.may_read
        self.seats = Seats(engine, self.cursors, self._streams, self.tasks)
        elsewhere = self.commands.elsewhere
        self.chores = Chores(engine, self.cursors, self.away, self.seats, elsewhere)
        self._lifetimes = self.chores.lifetimes
        self.seats.acknowledge, self.seats.save_soon = self.acknowledge, self.chores.save_soon
        self.delivered = 0
        self._rights = StreamRights(engine)

    def take_over(self, writer: WriterCore, recovered: Recovered) -> None:
        """The store was opened (again): positions are what it says or newer, and all must catch up."""
        self.cursors.restore(recovered.positions)
        self.cursors.fall_behind(writer.seq)
        self.cursors.reveal(recovered.origins)
        self._streams.lines = Table()
        self.changed(writer.lines.all)
        for cursor in self.cursors:
            if cursor.id not in writer.templates:
                self._lost(cursor.id)
            else:
                writer.index.pin(cursor.id)
        attached = set(self.attached)
        self._lifetimes.hold(self.attached)
        for id_, expires_us in self._lifetimes.restart(recovered, attached, now_us()).items():
            writer.index.renew(id_, expires_us)
        self.seats.take_over(recovered)
        self.away.take_over(recovered)
        self.commands.take_over(recovered)
        self.chores.save()
        self._pump()

    # --- after a commit --------------------------------------------------------------------------

    def committed(self, prepared: PreparedBatch) -> None:
        for id_ in prepared.cancelled:
            self._forget(id_)
            self.commands.standings.drop(id_)
        self._fleeting.keep_missed(prepared.events, self.cursors, monotonic_s())
        self._streams.send_all(self.cursors.commit(prepared.transaction.seq, prepared.events))
        self.away.committed(prepared.transaction, prepared.events)
        for batch, matches in prepared.devices:
            self.commands.registered(batch, matches)
            self._hold(filter(self.devices.get, batch.columns.each_id()))
        for stored in prepared.commands:
            self.commands.queue(stored)
        self.changed(prepared.transaction.lines or ())
        self._pump()

    def revealed(
        self, origins: Mapping[str, int], sections: Sequence[Section] | None = None
    ) -> None:
        """What a drain brought here counts from now on: rows up to these seqs of origins, in these sections (None: any)."""
        concerned = None if sections is None else self._formals_in(sections)
        self.cursors.reveal(origins, concerned)
        self._pump()

    def _formals_in(self, sections: Sequence[Section]) -> set[bytes]:
        families = {cursor.id: self._family_of(cursor.id) for cursor in self.cursors}
        keys = {formal: key_of(*family) for formal, family in families.items() if family}
        return {f for f, key in keys.items() if any(key in section for section in sections)}

    def changed(self, lines: Sequence[Line]) -> None:
        """These lines are durable here: told to every stream that reads something of them."""
        self._streams.tell(lines, self._keys_on, self._engine.writer.lines.servers)

    def _keys_on(self, stream: int) -> set[int]:
        formals = [*self.attached.on(stream), *self.seats.formals_on(stream)]
        return {key_of(*family) for family in map(self._family_of, formals) if family is not None}

    def _send_lines(self, stream: int, lines: Iterable[Line]) -> None:
        self._streams.send_lines(stream, lines, self._engine.writer.lines.servers)

    def tick(self, now: int) -> None:
        """Dead templates leave memory. What was let go at the start becomes durable."""
        self._lifetimes.tick(self.attached)
        for id_ in self._engine.writer.index.drop_expired(now):
            self._forget(id_)
        self.away.tick()
        self.seats.tick()
        if self._lifetimes.changed:
            self._engine.wake()
        self._pump()

    # --- streams ---------------------------------------------------------------------------------

    def open_stream(
        self, flush: Callable[[], None] = lambda: None, caller: Identity | None = None
    ) -> tuple[int, Outbox]:
        """`flush` is called when there is something in its outbox."""
        stream, outbox = self._streams.open(flush)
        self._rights.opened(stream, caller)
        self.cursors.open_stream(stream)
        return stream, outbox

    def close_stream(self, stream: int) -> None:
        for formal in self.attached.close(stream):
            self._begin_lifetime(formal)
            self.devices.detach(formal)
            self.away.left(formal, orderly=False)
        self.cursors.close_stream(stream)
        for formal in self.seats.formals_on(stream):
            self._leave_seat(formal, stream, orderly=False)
        self.chores.save()
        self._streams.close(stream)
        self._rights.closed(stream)

    def judge_again(self) -> None:
        """Other grants are in force: who may not have its deliveries any longer gets no more. Its EF stays."""
        for stream, notice in self._rights.withdrawn(self.attached, self.devices, self.seats):
            if self.seats.get(notice.formal) is not None:
                self._leave_seat(notice.formal, stream, orderly=True)
            else:
                self._begin_lifetime(notice.formal)
                self._detach(notice.formal)
            self._streams.drop(stream, notice.formal)
            self._send(stream, notice)

    def may_speak_of(self, stream: int, formal: bytes) -> Verdict | None:
        """The reader on this stream, of this formal. None: it is not in memory here, and its reader is known to nobody."""
        stored = self._engine.writer.templates.get(formal)
        kept = stored.packed.reader if stored else self.commands.reader_of(formal)
        return self._rights.may_speak(stream, kept)

    def written(self, stream: int, rows: int, weight_bytes: int = 0) -> None:
        self.delivered += rows
        self.cursors.written(stream, rows, weight_bytes)
        self._pump()

    def attach(
        self,
        stream: int,
        formal: bytes,
        window: int,
        after: Mapping[str, int] | None,
        generation: int = 0,
        window_bytes: int = 0,
        attempt: int = 0,
    ) -> None:
        """An EF's reader is here. It goes on after these seqs, by origin; else after what was acknowledged.

        A transaction that is being committed now may have been matched before this EF was marked as held, and then its
        rows are in no match list. `unmet_upto` is the last seq of which that may be so: the cursor finds those rows by a
        stored search, once they are there, and not live."""
        writer = self._engine.writer
        stored = writer.templates.get(formal)
        if stored is None or stored.packed.kind is not Kind.EF:
            return self._notify_unknown(stream, formal, generation)
        if refusal := self._rights.refusal(stream, stored.packed, formal, generation):
            return self._send(stream, refusal)
        if self._is_held_by_a_later_one(stream, formal, generation, attempt):
            return
        c = self._engine.config
        window = min(max(1, window), c.max_window)
        window_bytes = min(window_bytes, c.max_window_bytes)
        pool = self.seats.pool_of(stored)
        if pool is not None:
            self.seats.sit(pool, stream, generation)
            window, window_bytes, after = pool.ledger.window, 0, pool.ledger.upto
        place = stream if pool is None else pool.stream
        if pool is None or self.cursors.get(formal) is None:
            is_met = writer.index.pin(formal)
            is_held = self.away.returned(formal)
            unmet_upto = 0 if is_met and not is_held else writer.seq
            windows, own = (window_bytes, unmet_upto), (stored.packed.family, stored.seq)
            self.cursors.attach(formal, place, window, after or {}, *windows, *own)
            if is_held:
                self.cursors.hold(formal)
        if stored.expires_us != NEVER_US or formal in self._lifetimes.changed:
            self._hold([formal])
        if pool is not None and pool.ledger.terms.share:
            self.attached.attach(formal, place, 0)  # by all who sit there: none replaces another
        else:
            self._replace(place, formal, generation, attempt)
        self._notify_attached(stream, formal, generation)
        if pool is not None:
            self.seats.settled(pool)
        self._pump()

    async def attach_device(
        self,
        stream: int,
        formal: bytes,
        window: int,
        after: int | None,
        generation: int = 0,
        window_bytes: int = 0,
        attempt: int = 0,
    ) -> None:
        row, c = await self.commands.row_of(formal), self._engine.config
        if row is None or stream not in self._streams:
            self._notify_unknown(stream, formal, generation)
            return
        if refusal := self._rights.refusal(stream, row, formal, generation):
            return self._send(stream, refusal)
        if self._is_held_by_a_later_one(stream, formal, generation, attempt):
            return
        after = self.cursors.acknowledged(formal) if after is None else after
        windows = (min(max(1, window), c.max_window), min(window_bytes, c.max_window_bytes))
        device = device_at(row, formal, stream, generation, after, *windows)
        self._hold([formal])
        self.devices.attach(device)
        self._replace(stream, formal, generation, attempt)
        self._notify_attached(stream, formal, generation)
        self.commands.match(device)

    def _is_held_by_a_later_one(
        self, stream: int, formal: bytes, generation: int, attempt: int
    ) -> bool:
        later = self.attached.later_than(formal, generation)
        if later is not None:
            self._send(stream, Notice(News.REPLACED, formal, later))
        return later is not None or self.attached.is_outdated(formal, generation, attempt)

    def _detach(self, formal: bytes) -> None:
        self.cursors.detach(formal)
        self.devices.detach(formal)
        self.attached.detach(formal)

    def _lost(self, formal: bytes) -> None:
        """Whoever is attached has not cancelled it, and would wait for ever. Told that it is unknown here, it registers it again."""
        held = self.attached.holders.get(formal)
        if held is not None:
            alone = (held, self.attached.generation_of(formal))
            for stream, generation in self.seats.seated(formal) or [alone]:
                self._notify_unknown(stream, formal, generation)
                self.seats.leave(formal, stream, orderly=True)
            self._detach(formal)

    def _forget(self, formal: bytes) -> None:
        """The formal itself is gone."""
        self._lost(formal)
        self.cursors.forget(formal)
        self.commands.forget(formal)
        self.away.forget(formal)
        self.chores.gone |= self.seats.forget(formal)

    def _leave_seat(self, formal: bytes, stream: int, *, orderly: bool) -> None:
        if self.seats.leave(formal, stream, orderly=orderly):
            self._begin_lifetime(formal)
            self._detach(formal)
            self.away.left(formal, orderly=orderly)

    def _replace(self, stream: int, formal: bytes, generation: int, attempt: int) -> None:
        replaced = self.attached.attach(formal, stream, generation, attempt)
        if replaced is not None:
            self._send(replaced, Notice(News.REPLACED, formal, generation))

    def _notify_attached(self, stream: int, formal: bytes, generation: int) -> None:
        """With the line it is served by, so that a reader that came by an older one knows."""
        family = self._family_of(formal)
        assert family is not None
        line = self._streams.lines.line_of(key_of(*family))
        self._send_lines(stream, [line] if line is not None else [])
        presence = self.away.presence.get(formal)
        per_s = presence.own_per_s if presence is not None else 0.0
        self._send(stream, Notice(News.ATTACHED, formal, generation, per_s))
        self.away.declare_again(formal)

    def _notify_unknown(self, stream: int, formal: bytes, generation: int) -> None:
        """With every line: nobody knows what family a formal was of that is not here."""
        self._send_lines(stream, self._streams.lines)
        self._send(stream, Notice(News.UNKNOWN, formal, generation))

    def detach(self, stream: int, formal: bytes, *, cancel: bool, generation: int = 0) -> None:
        """Answered when the reader's positions, or the formal's end, are durable. An attachment that was replaced has no
        say in what becomes of the formal (see `attachments`), but it is answered all the same."""
        family = self._family_of(formal)
        request = Request()
        is_seated = self.seats.is_seated(formal, stream, generation)
        alone = is_seated and self.seats.is_alone(formal)
        if cancel and family and (alone or self.attached.may_end(formal, stream, generation)):
            epoch = self._engine.writer.lines.epoch_of(family)
            request = Request(cancels=[(0, formal, family)], epochs={family: epoch})
        if is_seated:
            self._leave_seat(formal, stream, orderly=True)
        elif self.attached.is_by(formal, stream, generation):
            self._begin_lifetime(formal)
            self._detach(formal)
            if not cancel:
                self.away.left(formal, orderly=True)
        self.chores.save()
        self.tasks.start(self._finish_detach(stream, formal, generation, request), "goodbye")

    async def _finish_detach(
        self, stream: int, formal: bytes, generation: int, request: Request
    ) -> None:
        try:
            await self._engine.register(request)
        except (NotRegistered, OutcomeUnknown) as error:  # the reader has a time-out
            _log.warning("goodbye not registered", reason=error)
        else:
            self._send(stream, Notice(News.DETACHED, formal, generation))

    def _hold(self, formals: Iterable[bytes]) -> None:
        self._lifetimes.hold(formals)
        if self._lifetimes.changed:
            self._engine.wake()

    def _begin_lifetime(self, formal: bytes) -> None:
        """Its reader was here until now: from now on its lifetime counts."""
        stored = self._engine.writer.templates.get(formal)
        device = self.devices.get(formal)
        if stored is not None:
            self._lifetimes.begin(formal, lifetime_us(stored.packed.lifetime_s), now_us())
        elif device is not None:
            self._lifetimes.begin(formal, device.lifetime_us, now_us())

    def _family_of(self, formal: bytes) -> Family | None:
        stored = self._engine.writer.templates.get(formal)
        return stored.packed.family if stored else self.commands.family_of(formal)

    def taken(
        self, stream: int, formal: bytes, count: int, generation: int = 0, weight: int = 0
    ) -> None:
        if self.seats.is_seated(formal, stream, generation):
            self.seats.begun(formal, stream, count)
        elif self.attached.is_by(formal, stream, generation):
            self.cursors.taken(formal, count, weight)
            self.commands.taken(formal, count, weight)
            self._pump()

    def acknowledge(self, formal: bytes, origin: str, seq: int) -> None:
        before = self.cursors.acknowledged(formal)
        if not self.cursors.acknowledge(formal, origin, seq):
            return
        self.commands.acknowledged(formal, before)
        if self.away.passed(formal, origin, self.cursors.over_upto(formal, origin, seq)):
            self.chores.save()
        else:
            self.chores.save_soon()

    def _pump(self) -> None:
        if self.cursors.has_readings:
            self.searches.pump()

    def _send(self, stream: int, item: Outgoing) -> None:
        """To a formal's seats: to the first, since one of them is enough to know."""
        for target in self.seats.streams_of(stream)[:1]:
            self._streams.send(target, item)
