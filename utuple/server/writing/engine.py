"""The engine: the writer's loop around the pure core. Receive, prepare, commit, answer, deliver.

Whatever has queued while the last commit was in flight is the next batch. When the store fails, the core
is thrown away and made anew from the store; calls in the failed batch are told what is known of them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.load import Load
from utuple.cluster.table import Table
from utuple.errors import Overloaded, Unavailable, UTupleError
from utuple.model.columns import MICROSECONDS
from utuple.model.identity import uuid7
from utuple.model.section import Section
from utuple.model.utuple import Family, Kind
from utuple.runtime.begun import Begun
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.server.config import ServerConfig
from utuple.server.delivering.absent.absences import Absence
from utuple.server.delivering.dispatcher import Dispatcher
from utuple.server.judging import Judge
from utuple.server.matching.kernels import Kernels
from utuple.server.moving.driver import MoveDriver
from utuple.server.moving.servers import ServerTransport
from utuple.server.moving.steps import Outcome, Step
from utuple.server.writing.backpressure import Backlog, Turn
from utuple.server.writing.garbage import GarbageFreezer
from utuple.server.writing.lines import judged_read
from utuple.server.writing.maintenance import collect_forever, tick_forever
from utuple.server.writing.queue import PreparedAhead, QueuedCall, WriterQueue, answer_failed
from utuple.server.writing.request import Answer, Request
from utuple.server.writing.transaction import PreparedBatch
from utuple.server.writing.workload import Workload
from utuple.server.writing.writer import Writer
from utuple.store.contract import (
    Census,
    Known,
    Recovered,
    Store,
    StoreStats,
    StoreUnavailable,
)

_log = Log("utuple.server.writing.engine")


class Engine:
    def __init__(self, config: ServerConfig, store: Store, servers: ServerTransport) -> None:
        self.config = config
        self.store = store
        self.heard: Mapping[str, ServerInfo] = {}
        """Where other servers are, as the managers know."""
        self.on_change: Callable[[], None] = lambda: None  # this server's lines have
        self.judge: Judge | None = None  # of a secured server
        self.random_bits: Callable[[], int] = partial(secrets.randbits, 74)
        self.census: dict[Section, Census] = {}
        self.state = "starting"
        self.stats = StoreStats()
        self.reads = 0
        """EFs of lifetime 0 being read: what they were promised is not deleted under them."""
        self.registered = self._writing_rows = 0
        self.workload = Workload(monotonic_s())
        store.on_search = lambda who, s: self.workload.searched(who, s, monotonic_s())
        self._wake = asyncio.Event()
        self.queue = WriterQueue(config, self._wake.set)
        self.hold = self.queue.hold
        self._garbage = GarbageFreezer()
        self._is_committing = self._is_store_suspected = False
        self._ahead: PreparedAhead | None = None
        self.loops: list[asyncio.Task[None]] = []
        self.kernels = Kernels()
        self.writer = Writer(config.name, Recovered())
        self.lines = Table()
        """Durable: what others are told. Of the writer's own, told too early, an epoch could have two contents."""
        self.delivering = Dispatcher(self)
        self.positions = self.delivering.cursors.positions
        self.ledgers = partial(self.delivering.seats.named, config.name)
        self.move_driver = MoveDriver(self, servers)

    async def start(self) -> None:
        self._take_over(await self.store.open(self.config.name, now_us()))
        for loop in (
            self._write_forever(),
            tick_forever(self.config.tick_s, self._tick),
            collect_forever(self),
        ):
            self.loops.append(asyncio.create_task(loop))

    def _take_over(self, recovered: Recovered) -> None:
        self.writer = Writer(self.config.name, recovered, self.kernels)
        self.lines = Table(recovered.lines)
        self._is_store_suspected = False
        self.state = "serving"
        if self.judge is not None:
            self.judge.opened(recovered.notes)
        self.delivering.take_over(self.writer, recovered)
        self.move_driver.take_over()
        lines, templates = len(recovered.lines), len(recovered.templates)
        _log.info("store opened", seq=recovered.seq, lines=lines, templates=templates)

    async def stop(self) -> None:
        self.state = "stopping"
        for task in (tasks := [*self.loops, *self.delivering.tasks, *self.move_driver.tasks]):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.queue.release_all()
        self._requeue_prepared()
        self.queue.fail_all(Unavailable("the server is stopping"))
        await self.store.close()

    # --- callers ---------------------------------------------------------------------------------

    async def register(self, request: Request, size_bytes: int = 0) -> Answer:
        return await self.submit(request, size_bytes)

    def submit(
        self, request: Request, size_bytes: int = 0, within_s: float = inf
    ) -> asyncio.Future[Answer]:
        """Queued for the writer; its answer, which is of use within so long. To cancel that takes it back."""
        if self.state == "stopping":
            raise Unavailable("the server is stopping")
        before, now_s = self._backlog, monotonic_s()
        if not before.accepts(request, size_bytes, within_s, self.config):
            raise self._refusal()
        call = QueuedCall(request, size_bytes, asyncio.get_running_loop().create_future())
        if before.rows:  # else it is not late by waiting: if it takes long, that is its own size
            call.answer_by_s = now_s + within_s
        self.queue.put(call)
        self.workload.meter.arrived(request.rows, now_s)
        self._prepare_ahead()
        return call.answer

    def judge_read(self, family: Family, epoch: int) -> Answer:
        """Its place in the writer's order is behind what is durable, whatever is under way."""
        committed = self.delivering.cursors.committed
        return judged_read(self.lines, self.config.name, family, epoch, committed)

    async def step(self, step: Step) -> Outcome:
        """One step of a move, in the writer's order."""
        answer = await self.register(Request(step=step))
        assert answer.outcome is not None
        return answer.outcome

    @property
    def own_lines(self) -> list[Line]:
        """Those this server is a member of."""
        return [line for line in self.lines if line.member(self.config.name) is not None]

    def new_id(self) -> bytes:
        return uuid7(now_us(), self.random_bits())

    def address_of(self, name: str) -> ServerInfo | None:
        """Where another server is: as it was last known here or to the managers, whichever is newer."""
        known = [self.writer.lines.servers.get(name), self.heard.get(name)]
        return max(filter(None, known), key=lambda info: info.since_us, default=None)

    def absences(self, move: str) -> Iterable[Absence]:
        return self.delivering.away.named(self.config.name, move)

    def acknowledged(self) -> AsyncIterator[tuple[Family, bytes, list[bytes]]]:
        return self.delivering.commands.all_acknowledged()

    @property
    def is_serving(self) -> bool:
        return self.state == "serving"

    def wake(self) -> None:
        self._wake.set()  # there is housekeeping to commit

    def load(self) -> Load:
        templates = self.writer.index.count(Kind.EF)
        return self.workload.load(self.queue.rows, monotonic_s(), templates)

    def delivered(self, families: Collection[Family], stored: bool, since_s: float) -> None:
        now_s = monotonic_s()
        self.workload.delivered(families, now_s - since_s, now_s, stored=stored)

    @property
    def _backlog(self) -> Backlog:
        rows, size_bytes = self.queue.rows, self.queue.size_bytes
        return Backlog(rows, size_bytes, self._writing_rows, self.workload.meter.full_rate_per_s)

    def _refusal(self) -> Overloaded:
        return self._backlog.refusal(self.load())

    def _tick(self) -> None:
        if self.is_serving:
            self.delivering.tick(now_us())

    def suspect_store(self) -> None:
        """Somebody who only reads has found the store gone. The writer alone opens it again, and notices only when it
        writes; a server with nothing to write (off in its lines, with readers that search what it holds) might wait for
        that for ever. So the writer makes sure, with an empty transaction."""
        self._is_store_suspected = True
        self.wake()

    # --- the writer ------------------------------------------------------------------------------

    async def _write_forever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            ahead, self._ahead = self._ahead, None
            batch = self._next_batch() if ahead is None else ahead.batch
            if not batch and not self.delivering.chores.are_there and not self._is_store_suspected:
                if not self.queue.is_empty:
                    self._wake.set()
                continue
            began_s = monotonic_s()
            self._writing_rows = sum(call.request.rows for call in batch)
            try:
                prepared = await (self._prepare(batch) if ahead is None else ahead.prepared)
                await self._commit(prepared)
            except StoreUnavailable as error:
                answer_failed(batch, error)
                await self._reopen(error)
            except UTupleError as error:
                await self._retry_one_by_one(batch, error)
            except Exception as error:  # noqa: BLE001  a bug: logged, and pinned to its call
                _log.exception("batch failed", requests=len(batch))
                await self._retry_one_by_one(batch, error)
            else:
                answering_s = monotonic_s()
                self.workload.begin_answers()
                self._answer(batch, prepared)
                self.paused(answering_s)
                self.workload.worked(began_s, prepared, monotonic_s())
            self._writing_rows = 0
            if not self.queue.is_empty or self._ahead is not None:
                self._wake.set()
                await asyncio.sleep(0)  # others have a turn, also if nothing was committed

    def _next_batch(self) -> list[QueuedCall]:
        return self.queue.next_batch(self._turn(), self._refusal)

    def _turn(self, ahead_rows: int = 0) -> Turn:
        return Turn(monotonic_s(), self.workload.meter.full_rate_per_s, ahead_rows)

    def _prepare_ahead(self) -> None:
        """While a large batch is being committed, prepare the next one, or PostgreSQL would wait for us.

        Only EAs that come for the first time: a retry is looked up in the store, which must have committed everything
        before it by then. The core is ahead of two commits now; if the first one fails, the core is thrown away with
        both batches, and the second one queues again (`_requeue_prepared`), so that nothing of it is lost or doubled."""
        is_worth_it = self._is_committing and self.queue.rows >= self.config.ahead_rows
        if not is_worth_it or self._ahead is not None:
            return
        batch = self.queue.pop_events(self._turn(self._writing_rows))
        if not batch:
            return
        self._ahead = PreparedAhead(batch, asyncio.get_running_loop().create_future())
        requests = [call.request for call in batch]
        self._writing_rows += sum(request.rows for request in requests)
        try:
            prepared = self._prepared(requests, {})
            if not prepared.is_large:
                self.writer.match(prepared)
            self.store.make_ready(prepared.transaction)
            self._ahead.prepared.set_result(prepared)
        except Exception as error:  # noqa: BLE001  a bug: raised in the writer's loop when this batch has its turn
            self._ahead.prepared.set_exception(error)

    def _requeue_prepared(self) -> None:
        """The core that prepared a batch ahead is thrown away: its calls come first in the queue again."""
        if self._ahead is not None:
            self.queue.put_back(self._ahead.batch)
            self._ahead = None

    async def _prepare(self, batch: list[QueuedCall]) -> PreparedBatch:
        requests = [call.request for call in batch]
        known: dict[bytes, Known] = {}
        if all(request.is_plain for request in requests):  # all for the first time
            return self._prepared(requests, known)
        events, devices = self.writer.retried(requests)
        if events:
            known |= await self.store.known_events(events)
        if devices:
            known |= await self.store.known_devices(devices)
        return self._prepared(requests, known)

    def _prepared(self, requests: Sequence[Request], known: Mapping[bytes, Known]) -> PreparedBatch:
        began_s = monotonic_s()
        prepared = self.writer.prepare(requests, known, self.delivering.chores.pop(), now_us())
        self.paused(began_s)
        return prepared

    async def _commit(self, prepared: PreparedBatch) -> None:
        """Commit the batch, and match its EAs while PostgreSQL works.

        Matching must see the index as it is after this batch and before the next one. An EF of a later batch finds these
        EAs in the store, because their seqs are below its own; if it met them in the index as well they would be
        delivered twice, and an EF of this batch that was cancelled by a later one would be missed. So nothing is
        prepared between `prepare` and `match`. A large batch is matched before its commit begins, slice by slice with
        turns of the event loop in between; `_prepare_ahead` does nothing then, since nothing is being committed."""
        while prepared.is_large and prepared.unmatched:
            self.writer.match_slice(prepared)
            await asyncio.sleep(0)
        if prepared.is_idle and not self._is_store_suspected and self.store.is_held():
            self._pass_by(prepared)
        else:
            self._is_committing = True
            try:
                committing = Begun(self.store.commit(prepared.transaction))
                bug = self._match(prepared)  # while PostgreSQL is at work
                await committing
                self._is_store_suspected = False
            finally:
                self._is_committing = False
            if bug is not None:
                raise StoreUnavailable(f"a bug: {bug}", maybe_committed=True) from bug
            if self.judge is not None:
                self.judge.committed(prepared.transaction.notes)
        if prepared.transaction.revealed:
            await self._reveal()
        if self.config.service_us:
            await asyncio.sleep(prepared.rows * self.config.service_us / MICROSECONDS)

    def _pass_by(self, prepared: PreparedBatch) -> None:
        """Nothing of this batch is stored: what is in it is of lifetime 0, matched and gone, and PostgreSQL has no part in
        it. There is no commit to fail, so that alone would not tell a server that another process has taken its store and
        its place, and that readers are attached there now: hence `is_held` (law 7)."""
        began_s = monotonic_s()
        self.writer.match(prepared)
        self.paused(began_s)

    def _match(self, prepared: PreparedBatch) -> Exception | None:
        """A bug in matching is returned, not raised: the commit is on its way and must be awaited first."""
        began_s = monotonic_s()
        try:
            self.writer.match(prepared)
        except Exception as bug:  # noqa: BLE001
            _log.exception("matching failed")
            return bug
        self.paused(began_s)
        return None

    async def _reveal(self) -> None:
        """Before the commit is answered: whoever reads by the new line finds them."""
        try:
            self.delivering.revealed(await self.store.origins())
        except StoreUnavailable as error:
            raise StoreUnavailable(str(error), maybe_committed=True) from error

    def paused(self, since_s: float) -> None:
        now_s = monotonic_s()
        self.workload.meter.paused(now_s - since_s, now_s)

    def _answer(self, batch: list[QueuedCall], prepared: PreparedBatch) -> None:
        """Everything of the batch is durable, and only now anybody hears of it. The order matters: delivery learns the
        new seq before callers are answered, so that a caller who then reads finds what it has registered."""
        if prepared.transaction.lines is not None:
            self.lines = Table(prepared.transaction.lines)
        self.delivering.committed(prepared)
        if prepared.changed:
            self.on_change()
        for call, answer in zip(batch, prepared.answers, strict=True):
            if not call.answer.done():
                call.answer.set_result(answer)
        self.registered += prepared.rows
        if prepared.transaction.templates:
            self._garbage.note_templates(len(self.writer.templates))

    async def _retry_one_by_one(self, batch: list[QueuedCall], error: Exception) -> None:
        """The batch failed for no known reason and nothing of it was committed. One call may be the cause: each is tried
        alone, and the one that fails alone is answered with the error."""
        if len(batch) == 1:
            if not batch[0].answer.done():
                batch[0].answer.set_exception(
                    Unavailable(f"the server could not store this: {error}")
                )
        else:
            self._requeue_prepared()
            self.queue.put_back(batch, one_by_one=True)
        await self._reopen(error)

    async def _reopen(self, cause: Exception) -> None:
        """The core may be ahead of what is stored, so it is thrown away and made anew from the store. Until then calls
        queue up to their limits, and nothing is answered."""
        self.state = "reopening"
        _log.warning("store lost", reason=cause)
        self._requeue_prepared()
        pause_s = self.config.reopen_s
        recovered: Recovered | None = None
        while recovered is None:
            try:
                recovered = await self.store.open(self.config.name, now_us())
            except StoreUnavailable as error:
                _log.warning("store still away", reason=error, retry_s=pause_s)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, self.config.reopen_s * 10)
        self._take_over(recovered)
