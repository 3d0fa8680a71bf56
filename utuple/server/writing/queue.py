"""What waits for the writer: registrations in the order they came, steps of moves, and what a move holds back.

Steps do not stand behind registrations, since EFs and CAs may be held back for them. They take turns with them, though:
a learner is taught 100,000 EFs in many steps, and has users of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

from utuple.errors import OutcomeUnknown, Overloaded, Unavailable, UTupleError
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.server.config import ServerConfig
from utuple.server.writing.backpressure import Turn, Verdict
from utuple.server.writing.request import Answer, Request
from utuple.server.writing.transaction import PreparedBatch
from utuple.store.contract import StoreUnavailable

EF_ROWS = 40
"""An EF that comes or goes takes the writer as long as this many EAs: a batch of EFs is smaller, so that nobody waits
long for it."""


@dataclass(slots=True)
class QueuedCall:
    request: Request
    size_bytes: int
    answer: asyncio.Future[Answer]
    """Done already if its caller has gone away before its turn: then it is dropped."""
    answer_by_s: float = inf
    """Its caller waits no longer than this."""


@dataclass(slots=True, eq=False)
class _Hold:
    """EF and CA registrations of a section wait while it lasts; EAs and CFs go on."""

    section: Section
    calls: list[QueuedCall] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None

    def keeps_back(self, request: Request) -> bool:
        families = [half.family for _, half in request.templates]
        families += [family for _, _, family in request.cancels]
        return any(key_of(*family) in self.section for family in families)


@dataclass(slots=True)
class PreparedAhead:
    """The next batch, prepared while the one before it is being committed. Should that commit fail, nothing of this
    one has happened yet: its calls queue again, and are prepared by the new core."""

    batch: list[QueuedCall]
    prepared: asyncio.Future[PreparedBatch]


def answer_failed(batch: Sequence[QueuedCall], error: StoreUnavailable) -> None:
    """Law 4: "not registered" only if that is certain. It never is of a retry, since its first attempt may have been
    registered."""
    for call in batch:
        if call.answer.done():
            continue
        if error.maybe_committed or call.request.retry:
            said: UTupleError = OutcomeUnknown(f"the store was lost while committing: {error}")
        else:
            said = Unavailable(f"the store is not reachable; nothing was registered: {error}")
        call.answer.set_exception(said)


class WriterQueue:
    def __init__(self, config: ServerConfig, on_change: Callable[[], None]) -> None:
        """`on_change` is called when there is something new to take."""
        self._config = config
        self._on_change = on_change
        self._calls: deque[QueuedCall] = deque()
        self._steps: list[QueuedCall] = []
        self._last_was_steps = False
        self._holds: list[_Hold] = []
        self._one_by_one = 0
        """How many calls come as batches of their own, because a batch of theirs failed for no known reason."""
        self.rows = 0
        self.size_bytes = 0

    @property
    def is_empty(self) -> bool:
        return not self._calls and not self._steps

    def put(self, call: QueuedCall) -> None:
        if call.request.step is not None:
            self._steps.append(call)
        else:
            self._calls.append(call)
            self._count(call, 1)
        self._on_change()

    def put_back(self, batch: Sequence[QueuedCall], *, one_by_one: bool = False) -> None:
        """Before all others, in the same order."""
        for call in reversed(batch):
            self._calls.appendleft(call)
            self._count(call, 1)
        if one_by_one:
            self._one_by_one = len(batch)

    def fail_all(self, error: Exception) -> None:
        for call in (*self._calls, *self._steps):
            if not call.answer.done():
                call.answer.set_exception(error)

    # --- batches -----------------------------------------------------------------------------------

    def next_batch(self, turn: Turn, refusal: Callable[[], Overloaded]) -> list[QueuedCall]:
        """All steps that wait, alone, since their commit is small; else registrations up to the limits of a batch. What
        would be answered too late is refused on the way."""
        steps = [] if self._last_was_steps and self._calls else self._pop_steps()
        self._last_was_steps = bool(steps)
        return steps or self._pop_batch(turn, refusal)

    def pop_events(self, turn: Turn) -> list[QueuedCall]:
        """The first registrations, as long as they are EAs for the first time that will be answered in time. Nothing if
        something else has to come first."""
        batch: list[QueuedCall] = []
        rows = 0
        if self._steps or self._one_by_one:
            return batch
        while self._calls and rows < self._config.max_batch_rows:
            first = self._calls[0]
            is_in_time = turn.judge(first.request.rows, first.answer_by_s) is Verdict.JOINS
            if not first.request.is_plain or not is_in_time:
                break
            self._pop()
            if not first.answer.done():
                batch.append(first)
                rows += first.request.rows
        return batch

    def _pop_steps(self) -> list[QueuedCall]:
        steps, self._steps = self._steps, []
        return [step for step in steps if not step.answer.done()]

    def _pop_batch(self, turn: Turn, refusal: Callable[[], Overloaded]) -> list[QueuedCall]:
        batch: list[QueuedCall] = []
        rows = size_bytes = 0
        while rows < self._config.max_batch_rows and size_bytes < self._config.max_batch_bytes:
            call = self._pop_for(turn, refusal)
            if call is None:
                break
            hold = next((one for one in self._holds if one.keeps_back(call.request)), None)
            if hold is not None:
                hold.calls.append(call)
                continue
            batch.append(call)
            size_bytes += call.size_bytes
            changes = len(call.request.templates) + len(call.request.cancels)
            rows += call.request.rows + EF_ROWS * changes
            if self._one_by_one > 0:
                self._one_by_one -= 1
                break
        return batch

    def _pop_for(self, turn: Turn, refusal: Callable[[], Overloaded]) -> QueuedCall | None:
        """The next call that joins this turn."""
        while self._calls:
            call = self._calls[0]
            if not call.answer.done():
                verdict = turn.judge(call.request.rows, call.answer_by_s)
                if verdict is Verdict.JOINS:
                    return self._pop()
                if verdict is Verdict.LATER:
                    return None
                call.answer.set_exception(refusal())
            self._pop()
        return None

    def _pop(self) -> QueuedCall:
        call = self._calls.popleft()
        self._count(call, -1)
        return call

    def _count(self, call: QueuedCall, sign: int) -> None:
        self.rows += sign * call.request.rows
        self.size_bytes += sign * call.size_bytes

    # --- holds -------------------------------------------------------------------------------------

    def hold(self, section: Section) -> Callable[[], None]:
        """Hold back EFs and CAs of the section until what this gives is called, or for `hold_limit_s` at most. A hold is
        only in memory, and may end too early: the commit of the move checks that nothing came meanwhile."""
        hold = _Hold(section)
        release = partial(self._release, hold)
        loop = asyncio.get_running_loop()
        hold.timer = loop.call_later(self._config.hold_limit_s, release)
        self._holds.append(hold)
        return release

    def release_all(self) -> None:
        for hold in list(self._holds):
            self._release(hold)

    def _release(self, hold: _Hold) -> None:
        if hold in self._holds:
            self._holds.remove(hold)
            if hold.timer is not None:
                hold.timer.cancel()
            self.put_back(hold.calls)
            self._on_change()
