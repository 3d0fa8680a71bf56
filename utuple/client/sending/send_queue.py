"""The queue of what is to be sent to one server: what queues while calls are in flight leaves together.

A lonely item leaves at once, a flood leaves in large calls. The queue has a limit, and beyond it the caller waits
(backpressure). When a call is not answered for too long, what waits behind it and would do as well elsewhere is failed
as overloaded, so that its sender chooses another server.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from utuple.client.config import Config
from utuple.errors import (
    Closed,
    NotRegistered,
    OutcomeUnknown,
    Overloaded,
    Unavailable,
    UTupleError,
)


class Item(Protocol):
    """What one caller sends; `answer` is settled by the call, or failed by the queue."""

    sent: bool
    may_go_elsewhere: bool
    """Another server would do as well."""
    answer: asyncio.Future[Any]
    send_by_s: float
    """Set by the queue: later its answer would hardly come in time."""

    @property
    def rows(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    def joins(self, shared: dict[object, object]) -> bool:
        """May it share a call with those that agreed on this? If so, what it adds is noted there."""


T = TypeVar("T", bound=Item)

SendBatch = Callable[[Sequence[T]], Awaitable[None]]
"""Make one call of these items, begun when this returns, and settle their answers; what that raises is every item's
outcome."""


_LAST_ATTEMPT = 0.8
"""Of the time left to an attempt that has little, what must be left when it is sent."""


class SendQueue(Generic[T]):
    def __init__(
        self, server: str, carry: SendBatch[T], config: Config, calls: int, few_calls: int = 0
    ) -> None:
        """Calls in flight: `calls` in general, and up to `few_calls` while they are small (`config.few_rows` in all)."""
        self._server = server
        self._carry = carry
        self._config = config
        self._calls_in_flight = calls
        self._few_calls = few_calls
        self._spare_s = min(config.answer_s, config.timeout_s / 2)
        self._queue: deque[T] = deque()
        self._room = asyncio.Event()
        self._calls: dict[asyncio.Task[None], tuple[list[T], float]] = {}
        """Those on their way, with what they carry and when they left: the oldest first."""
        self._look: asyncio.TimerHandle | None = None
        self._queued_rows = 0
        self._queued_bytes = 0
        self._sent_rows = 0
        self._failure: UTupleError | None = None
        """Of the last call that ended: the server did not answer it."""
        self._closed = False

    @property
    def rows(self) -> int:
        """Queued or on their way."""
        return self._queued_rows + self._sent_rows

    @property
    def sent_rows(self) -> int:
        """On their way."""
        return self._sent_rows

    @property
    def owed_since_s(self) -> float | None:
        """When the oldest call left that is not answered."""
        return next((since_s for _, since_s in self._calls.values()), None)

    async def send(self, item: T, deadline_s: float) -> Any:
        """The item's answer. Raises Overloaded, or Unavailable, if it was never sent, OutcomeUnknown if it was sent and
        no answer came in time."""
        loop = asyncio.get_running_loop()
        left_s = deadline_s - loop.time()
        item.send_by_s = deadline_s - min(self._spare_s, _LAST_ATTEMPT * left_s)
        if self._is_full:
            await self._wait_for_room(deadline_s)
        self._put(item)
        timer = loop.call_at(deadline_s, self._too_late, item)
        try:
            return await item.answer
        finally:
            timer.cancel()

    async def _wait_for_room(self, deadline_s: float) -> None:
        try:
            async with asyncio.timeout_at(deadline_s):
                while self._is_full and not self._closed:
                    self._room.clear()
                    await self._room.wait()
        except TimeoutError:
            raise self._not_sent(f"too much is waiting for {self._server}") from None

    def call_of(self, item: T) -> asyncio.Task[None] | None:
        """The call that it is on its way with."""
        return next((call for call, (batch, _) in self._calls.items() if item in batch), None)

    def _too_late(self, item: T) -> None:
        if item.answer.done():
            return
        if item.sent:
            item.answer.set_exception(OutcomeUnknown(f"{self._server} did not answer in time"))
        else:
            item.answer.set_exception(self._not_sent(f"too much is waiting for {self._server}"))

    def _not_sent(self, said: str) -> NotRegistered:
        """A server that takes no calls, or has not answered one for as long as an answer may take, is not full: nobody
        knows whether it is there. Its line is asked for again then, and the caller is told so in the end."""
        since_s = self.owed_since_s
        is_silent = (
            since_s is not None
            and asyncio.get_running_loop().time() >= since_s + self._config.answer_s
        )
        if self._failure is None and not is_silent:
            return Overloaded(said)
        why = f" ({self._failure})" if self._failure is not None else ""
        return Unavailable(f"{self._server} does not answer{why}; this was not sent")

    @property
    def _is_full(self) -> bool:
        return (
            self._queued_rows >= self._config.queued_rows
            or self._queued_bytes >= self._config.queued_bytes
        )

    def _put(self, item: T) -> None:
        if self._closed:
            raise Closed("this space is closed")
        self._queue.append(item)
        self._queued_rows += item.rows
        self._queued_bytes += item.size_bytes
        self._start()

    def _start(self) -> None:
        while self._may_call:
            batch = self._next_batch()
            if not batch:
                return
            self._sent_rows += sum(item.rows for item in batch)
            call = asyncio.create_task(self._settle(batch, self._carry(batch)))
            self._calls[call] = (batch, asyncio.get_running_loop().time())
            call.add_done_callback(self._ended)
            self._look_later()

    @property
    def _may_call(self) -> bool:
        calls = len(self._calls)
        are_few = self._sent_rows < self._config.few_rows
        return calls < self._calls_in_flight or (are_few and calls < self._few_calls)

    def _next_batch(self) -> list[T]:
        """The front of the queue, as far as it may share one call."""
        batch: list[T] = []
        shared: dict[object, object] = {}
        rows = size_bytes = 0
        now_s = asyncio.get_running_loop().time()
        while self._queue:
            item = self._queue[0]
            if item.send_by_s < now_s and not item.answer.done():
                late = self._not_sent(f"too much was waiting for {self._server}; it was not sent")
                item.answer.set_exception(late)
            if item.answer.done():  # its caller has gone
                self._unqueue(item)
                continue
            rows += item.rows
            size_bytes += item.size_bytes
            large = rows > self._config.batch_rows or size_bytes > self._config.batch_bytes
            if (batch and large) or not item.joins(shared):
                break
            self._unqueue(item)
            item.sent = True
            batch.append(item)
        if not self._is_full:
            self._room.set()
        return batch

    def _unqueue(self, item: T) -> None:
        self._queue.popleft()
        self._queued_rows -= item.rows
        self._queued_bytes -= item.size_bytes

    async def _settle(self, batch: list[T], carried: Awaitable[None]) -> None:
        try:
            await carried
            self._failure = None
        except UTupleError as failure:
            silent = isinstance(failure, Unavailable | OutcomeUnknown)
            self._failure = failure if silent else None
            for item in batch:
                if not item.answer.done():
                    item.answer.set_exception(failure)

    def _ended(self, call: asyncio.Task[None]) -> None:
        batch, _ = self._calls.pop(call)
        self._sent_rows -= sum(item.rows for item in batch)
        for item in batch:
            if not item.answer.done():
                cut = OutcomeUnknown(f"the call to {self._server} was cut short")
                item.answer.set_exception(cut)
        if not self._closed:
            self._start()

    def _look_later(self) -> None:
        since_s = self.owed_since_s
        if self._look is None and since_s is not None:
            due_s = since_s + self._config.stuck_s
            self._look = asyncio.get_running_loop().call_at(due_s, self._look_now)

    def _look_now(self) -> None:
        """A call is late: what waits behind it and may go elsewhere is failed, and so goes elsewhere. Looks again as long as
        calls are in flight."""
        self._look = None
        since_s, now_s = self.owed_since_s, asyncio.get_running_loop().time()
        if since_s is None:
            return
        if now_s < since_s + self._config.stuck_s:
            self._look_later()
            return
        waiting, self._queue = self._queue, deque()
        for item in waiting:
            if item.may_go_elsewhere and not item.answer.done():
                item.answer.set_exception(self._not_sent(f"{self._server} does not keep up"))
            if not item.answer.done():
                self._queue.append(item)
            else:
                self._queued_rows -= item.rows
                self._queued_bytes -= item.size_bytes
        self._room.set()
        self._look = asyncio.get_running_loop().call_later(self._config.stuck_s, self._look_now)

    async def close(self) -> None:
        """What was queued was not sent. Calls on their way are given a moment to be answered, since that is better to
        hear than that nobody knows; then they are cut, and their outcome is unknown."""
        self._closed = True
        self._room.set()
        if self._look is not None:
            self._look.cancel()
        for item in self._queue:
            if not item.answer.done():
                item.answer.set_exception(Closed("this space is closed"))
        self._queue.clear()
        if self._calls:
            await asyncio.wait(list(self._calls), timeout=self._config.detach_s)
        for call in list(self._calls):
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
