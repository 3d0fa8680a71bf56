"""The engine: the writer's loop around the pure core. Receive, prepare, commit, answer, deliver.

Whatever has queued while the last commit was in flight is the next batch. When the store fails, the core
is thrown away and made anew from the store; calls in the failed batch are told what is known of them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.load import Load
from utuple.cluster.table import Table
from utuple.errors import OutcomeUnknown, Overloaded, Unavailable, UTupleError
from utuple.model.columns import MICROSECONDS
from utuple.model.identity import uuid7
from utuple.model.section import Section
from utuple.model.utuple import Family, Kind
from utuple.runtime.begun import Begun
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.server.config import ServerConfig
from utuple.server.delivering.dispatcher import Delivering
from utuple.server.matching.kernels import Kernels
from utuple.server.moving.driver import Mover
from utuple.server.moving.servers import Others
from utuple.server.moving.steps import Outcome, Step
from utuple.server.writing.backpressure import Backlog, Turn
from utuple.server.writing.garbage import Garbage
from utuple.server.writing.lines import judged
from utuple.server.writing.maintenance import collect_forever, tick_forever
from utuple.server.writing.meter import FamilyRates, Meter
from utuple.server.writing.queue import Ahead, Hold, Queue, Waiting
from utuple.server.writing.request import Answer, Part, Refusal, Request
from utuple.server.writing.writer import Prepared, Writer
from utuple.store.contract import Census, Known, Recovered, Store, StoreStats, StoreUnavailable

_log = Log("utuple.server.writing.engine")
_EF_ROWS = 40
"""An EF that comes or goes takes the writer as long as so many EAs and more: a batch of them is smaller, so that
nobody waits for it."""


class Engine:
    def __init__(self, config: ServerConfig, store: Store, others: Others) -> None:
        self.config = config
        self.store = store
        self.heard: Mapping[str, ServerInfo] = {}
        """Where other servers are, as the managers know."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when this server's lines have changed."""
        self.random_bits: Callable[[], int] = partial(secrets.randbits, 74)
        self.census: dict[Section, Census] = {}
        self.rates = FamilyRates()
        self.state = "starting"
        self.stats = StoreStats()
        self.reads = 0
        """EFs of lifetime 0 being read: what they were promised is not deleted under them."""
        self.registered = 0
        self._meter = Meter(monotonic_s())
        self._queue = Queue()
        self._steps = Queue()
        """Steps of moves do not stand behind registrations: EFs and CAs may be held back for them."""
        self._has_stepped = False
        """They take turns, though: a learner has 100,000 EFs to take in, and users of its own."""
        self._garbage = Garbage()
        self._writing_rows = 0
        self._is_committing = False
        self._ahead: Ahead | None = None
        self._wake = asyncio.Event()
        self._holds: list[Hold] = []
        self._one_by_one = 0
        """After a batch failed for no known reason: how many requests to try alone."""
        self.loops: list[asyncio.Task[None]] = []
        self.kernels = Kernels()
        self.writer = Writer(config.name, Recovered())
        self.lines = Table()
        """Durable, so this is what others are told. The writer's own are ahead of their commit: told too
        early, an epoch could come to have two contents."""
        self.delivering = Delivering(self)
        self.mover = Mover(self, others)

    async def start(self) -> None:
        self._take_over(await self.store.open(self.config.name, now_us()))
        for loop in (self._write_forever(), tick_forever(self), collect_forever(self)):
            self.loops.append(asyncio.create_task(loop))

    def _take_over(self, recovered: Recovered) -> None:
        self.writer = Writer(self.config.name, recovered, self.kernels)
        self.lines = Table(recovered.lines)
        self.state = "serving"
        self.delivering.take_over(self.writer, recovered)
        self.mover.take_over()
        lines, templates = len(recovered.lines), len(recovered.templates)
        _log.info("store opened", seq=recovered.seq, lines=lines, templates=templates)

    async def stop(self) -> None:
        self.state = "stopping"
        for task in (tasks := [*self.loops, *self.delivering.tasks, *self.mover.tasks]):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for hold in list(self._holds):
            self.release(hold)
        self._wait_again()
        for waiting in (*self._queue, *self._steps):
            if not waiting.answer.done():
                waiting.answer.set_exception(Unavailable("the server is stopping"))
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
        if not before.takes(request, size_bytes, within_s, self.config):
            raise self._refusal()
        waiting = Waiting(request, size_bytes, asyncio.get_running_loop().create_future())
        if before.rows:  # else it is not late by waiting: if it takes long, that is its own size
            waiting.answer_by_s = now_s + within_s
        (self._queue if request.step is None else self._steps).put(waiting)
        self._meter.arrived(request.rows, now_s)
        self._wake.set()
        self._look_ahead()
        return waiting.answer

    def judge_read(self, family: Family, epoch: int) -> Answer:
        """An EF that is read once changes nothing: its place in the writer's order is behind what is durable, whatever is
        under way."""
        reason, line = judged(self.lines, self.config.name, family, epoch, accumulates=False)
        refused = [] if reason is None else [Refusal(Part.TEMPLATES, reason, [0])]
        told = [line] if refused and line is not None else []
        return Answer(refused, told, self.delivering.cursors.committed)

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

    def hold(self, section: Section) -> Hold:
        """Hold back EFs and CAs of the section until `release`, or for a while at most. Only in memory:
        the commit of the move checks that nothing came."""
        hold = Hold(section)
        loop = asyncio.get_running_loop()
        hold.timer = loop.call_later(self.config.hold_limit_s, self.release, hold)
        self._holds.append(hold)
        return hold

    def release(self, hold: Hold) -> None:
        if hold in self._holds:
            self._holds.remove(hold)
            if hold.timer is not None:
                hold.timer.cancel()
            self._queue.put_back(hold.waiting)
            self._wake.set()

    def wake(self) -> None:
        """There is housekeeping to commit."""
        self._wake.set()

    def load(self) -> Load:
        return self._meter.load(self._queue.rows, monotonic_s(), self.writer.book.count(Kind.EF))

    @property
    def _backlog(self) -> Backlog:
        queue, rate_per_s = self._queue, self._meter.full_rate_per_s
        return Backlog(queue.rows, queue.size_bytes, self._writing_rows, rate_per_s)

    def _refusal(self) -> Overloaded:
        return self._backlog.refusal(self.load())

    # --- the writer ------------------------------------------------------------------------------

    async def _write_forever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            ahead, self._ahead = self._ahead, None
            batch = self._next_batch() if ahead is None else ahead.batch
            if not batch and not self.delivering.has_chores:
                if self._steps:
                    self._wake.set()
                continue
            began_s = monotonic_s()
            self._writing_rows = sum(waiting.request.rows for waiting in batch)
            try:
                prepared = await (self._prepare(batch) if ahead is None else ahead.prepared)
                await self._commit(prepared)
            except StoreUnavailable as error:
                self._tell_failed(batch, error)
                await self._reopen(error)
            except UTupleError as error:
                await self._after_surprise(batch, error)
            except Exception as error:  # noqa: BLE001  a bug: told, and pinned to its request
                _log.exception("batch failed", requests=len(batch))
                await self._after_surprise(batch, error)
            else:
                told_s = monotonic_s()
                self._tell(batch, prepared)
                self.paused(told_s)
                self._meter.worked(began_s, prepared.rows, monotonic_s())
            self._writing_rows = 0
            if self._queue or self._steps or self._ahead is not None:
                self._wake.set()

    def _next_batch(self) -> list[Waiting]:
        batch: list[Waiting] = []
        if not self._queue or not self._has_stepped:
            batch = [step for step in self._steps if not step.answer.done()]
            self._steps = Queue()
        self._has_stepped = bool(batch)
        if batch:
            return batch  # alone: their commit is small
        rows = size_bytes = 0
        turn = Turn(monotonic_s(), self._meter.full_rate_per_s)
        while rows < self.config.max_batch_rows and size_bytes < self.config.max_batch_bytes:
            waiting = self._queue.take_for(turn, self._refusal)
            if waiting is None:
                break
            if self._holds:
                held = (hold for hold in self._holds if hold.keeps_back(waiting.request))
                if (hold := next(held, None)) is not None:
                    hold.waiting.append(waiting)
                    continue
            batch.append(waiting)
            size_bytes += waiting.size_bytes
            changes = len(waiting.request.templates) + len(waiting.request.cancels)
            rows += waiting.request.rows + _EF_ROWS * changes
            if self._one_by_one > 0:
                self._one_by_one -= 1
                break
        return batch

    def _look_ahead(self) -> None:
        """While a large batch is being committed, the next one is prepared: PostgreSQL would wait for us. EAs only,
        and no retries: these are looked up in the store, which must have all that came before."""
        is_worth_it = self._is_committing and self._queue.rows >= self.config.ahead_rows
        if not is_worth_it or self._ahead is not None or self._steps or self._one_by_one:
            return
        turn = Turn(monotonic_s(), self._meter.full_rate_per_s, self._writing_rows)
        batch = self._queue.take_plain(self.config.max_batch_rows, turn)
        if not batch:
            return
        self._ahead = Ahead(batch, asyncio.get_running_loop().create_future())
        requests = [waiting.request for waiting in batch]
        self._writing_rows += sum(request.rows for request in requests)
        try:
            prepared = self._prepared(requests, {})
            if not prepared.is_large:
                self.writer.meet(prepared)
            self.store.make_ready(prepared.transaction)
            self._ahead.prepared.set_result(prepared)
        except Exception as error:  # noqa: BLE001  a bug: met by the writer in its turn
            self._ahead.prepared.set_exception(error)

    def _wait_again(self) -> None:
        """What was prepared ahead: the core it was prepared by is thrown away."""
        if self._ahead is not None:
            self._queue.put_back(self._ahead.batch)
            self._ahead = None

    async def _prepare(self, batch: list[Waiting]) -> Prepared:
        requests = [waiting.request for waiting in batch]
        known: dict[bytes, Known] = {}
        if all(request.is_plain for request in requests):  # all for the first time
            return self._prepared(requests, known)
        events, devices = self.writer.retried(requests)
        if events:
            known |= await self.store.known_events(events)
        if devices:
            known |= await self.store.known_devices(devices)
        return self._prepared(requests, known)

    def _prepared(self, requests: Sequence[Request], known: Mapping[bytes, Known]) -> Prepared:
        began_s = monotonic_s()
        prepared = self.writer.prepare(requests, known, self.delivering.housekeeping(), now_us())
        self.paused(began_s)
        return prepared

    async def _commit(self, prepared: Prepared) -> None:
        while prepared.is_large and prepared.unmet:
            self.writer.meet_some(prepared)
            await asyncio.sleep(0)
        if not prepared.is_idle:
            self._is_committing = True
            try:
                committing = Begun(self.store.commit(prepared.transaction))
                bug = self._meet(prepared)  # while PostgreSQL is at work
                await committing
            finally:
                self._is_committing = False
            if bug is not None:
                raise StoreUnavailable(f"a bug: {bug}", maybe_committed=True) from bug
        if prepared.transaction.revealed:
            await self._reveal()
        if self.config.service_us:
            await asyncio.sleep(prepared.rows * self.config.service_us / MICROSECONDS)

    def _meet(self, prepared: Prepared) -> Exception | None:
        """A bug in it must not keep the commit from being awaited."""
        began_s = monotonic_s()
        try:
            self.writer.meet(prepared)
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
        self._meter.paused(now_s - since_s, now_s)

    def longest_pause_s(self) -> float:
        return self._meter.longest_pause_s(monotonic_s())

    def _tell(self, batch: list[Waiting], prepared: Prepared) -> None:
        if prepared.transaction.lines is not None:
            self.lines = Table(prepared.transaction.lines)
        self.delivering.committed(prepared)
        if prepared.changed:
            self.on_change()
        for waiting, answer in zip(batch, prepared.answers, strict=True):
            if not waiting.answer.done():
                waiting.answer.set_result(answer)
        self.registered += prepared.rows
        self.rates.add(prepared.taken, monotonic_s())
        self._garbage.grown_to(len(self.writer.templates))

    def _tell_failed(self, batch: list[Waiting], error: StoreUnavailable) -> None:
        for waiting in batch:
            if waiting.answer.done():
                continue
            if error.maybe_committed or waiting.request.retry:
                told: UTupleError = OutcomeUnknown(f"the store was lost while committing: {error}")
            else:
                told = Unavailable(f"the store is not reachable; nothing was registered: {error}")
            waiting.answer.set_exception(told)

    async def _after_surprise(self, batch: list[Waiting], error: Exception) -> None:
        """Nothing was committed. One request may be the cause: try each alone, tell the culprit."""
        if len(batch) == 1:
            if not batch[0].answer.done():
                batch[0].answer.set_exception(
                    Unavailable(f"the server could not store this: {error}")
                )
        else:
            self._wait_again()
            self._one_by_one = len(batch)
            self._queue.put_back(batch)
        await self._reopen(error)

    async def _reopen(self, cause: Exception) -> None:
        self.state = "reopening"
        _log.warning("store lost", reason=cause)
        self._wait_again()
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
