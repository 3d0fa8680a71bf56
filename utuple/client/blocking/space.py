"""The same verbs for programs without an event loop: the asynchronous space runs on one in a thread of its own.

Nothing is written twice: each verb here is the asynchronous one, called over there and waited for. A space, and what
it hands out, may be used from any thread. A caller's iterables run on the caller's thread.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from utuple.client.arguments import check_timeout
from utuple.client.blocking.signatures import twin_of
from utuple.client.blocking.worker import Call, Worker
from utuple.client.connecting import connect as async_connect
from utuple.client.reading.read import Batch, StoredEvents
from utuple.client.receiving.deliveries import Deliveries, check_take
from utuple.client.receiving.delivery import SETTLED, Chunk, Delivered, Settling, check_after
from utuple.client.receiving.delivery import Delivery as AsyncDelivery
from utuple.client.receiving.device import Device as AsyncDevice
from utuple.client.receiving.drops import Drop
from utuple.client.receiving.watch import Watch as AsyncWatch
from utuple.client.sending.pipeline import Pipeline
from utuple.client.sending.receipt import Receipt, Receipts
from utuple.client.space import Space as AsyncSpace
from utuple.errors import Closed, OutcomeUnknown, ReaderReplaced

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", bound=Deliveries)
B = TypeVar("B", bound="BlockingDeliveries[Any]")

_TAKEN_AT_ONCE = 1_000
"""Deliveries fetched from the event loop in one go, when they are there already."""
_MARGIN_S = 10.0
"""A verb ends by itself within its time-out and what it waits for on top of it (a lookup, streams to open). One that
has not ended so long after its time-out never will: its event loop is held up."""

More = Callable[["deque[AsyncDelivery]"], Coroutine[Any, Any, int]]
"""Fetch more into this, and say how many; 0 at the end."""


class Delivery(Delivered):
    """One event of a watch or read, or one command to a device."""

    __slots__ = ("_worker",)

    def __init__(self, own: AsyncDelivery, worker: Worker) -> None:
        super().__init__(own._chunk, own._place, own._by)
        self._worker = worker

    def ack(self) -> None:
        """Done with it: a reader with a name, started again, is not given it again. Returns at once. Once only, and before
        the watch is closed: then it raises `InvalidInput`, or `Closed`, and what was not acknowledged comes again."""
        self._say(None)

    def nack(self, after_s: float = 0.0) -> None:
        """Not done: it comes again after so many seconds, until it was tried `attempts` times; then it is parked."""
        self._say(check_after(after_s))

    def _say(self, after_s: float | None) -> None:
        self._worker.check()
        self._by.check(self._chunk, self._place, after_s)
        by, self._by = self._by, SETTLED
        self._worker.post(functools.partial(_settle, by, self._chunk, self._place, after_s))


def _settle(by: Settling, chunk: Chunk, place: int, after_s: float | None) -> None:
    with suppress(Closed):  # by another thread, meanwhile: it comes again
        by.acknowledge(chunk, place, after_s)


class Fetched:
    """Deliveries on their way from the event loop to whichever threads take them: each goes to one of them.

    They are fetched into a queue that all threads share, by one call that all wait for, and that goes on when one of
    them is interrupted: so nothing is handed out twice, and nothing is lost with a thread that goes.
    """

    def __init__(self, worker: Worker, more: More) -> None:
        self._worker = worker
        self._more = more
        self._queue: deque[AsyncDelivery] = deque()
        self._lock = threading.Lock()
        self._call: Call[int] | None = None

    def next(self, timeout_s: float | None = None) -> Delivery | None:
        """None at the end. Raises TimeoutError when nothing has come by then: the fetch goes on, and what it brings is for
        whoever asks next."""
        self._worker.check()
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            for found in self.here(1):
                return found
            call = self._fetching()
            if call is None:
                continue
            if until_s is not None and not self._worker.is_settled(call, until_s):
                raise TimeoutError("nothing came")
            if not self._worker.wait(call):
                return None

    def here(self, most: int) -> list[Delivery]:
        """Those that have been fetched already, at most so many."""
        found: list[Delivery] = []
        with suppress(IndexError):
            while len(found) < most:
                found.append(Delivery(self._queue.popleft(), self._worker))
        return found

    def _fetching(self) -> Call[int] | None:
        """None: some are here. Looked at again under the lock: else one thread could wait for more while another's
        fetch has just filled the queue."""
        with self._lock:
            if self._queue:
                return None
            if self._call is None or self._call.answer.done():
                self._call = self._worker.begin(self._more(self._queue))
            return self._call

    async def cut(self) -> None:
        """On the loop: fetch no more. What is here may still be taken."""
        if self._call is not None:
            await self._call.cut()


class BlockingDeliveries(Generic[D]):
    """A context manager and an iterator of deliveries. Threads that iterate it together share them. When it is closed,
    by whichever of them, their iterations end; `next` and `take` say that it is `Closed`."""

    def __init__(self, own: D, worker: Worker) -> None:
        self._own = own
        self._worker = worker
        self._fetched = Fetched(worker, self._more)

    def __repr__(self) -> str:
        return repr(self._own)

    def __enter__(self) -> Self:
        self._worker.run(self._own.open())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivery:
        try:
            delivery = self._fetched.next()
        except ReaderReplaced:
            raise  # by another program, and this one should know
        except Closed:
            raise StopIteration from None
        assert delivery is not None, "it ends by an error only"
        return delivery

    def next(self, timeout_s: float | None = None) -> Delivery | None:
        """The next delivery; None if none comes within `timeout_s`.

        while (event := events.next(timeout_s=5)) is not None:
            print(event.data)
        """
        check_timeout(timeout_s)
        try:
            return self._fetched.next(timeout_s)
        except TimeoutError:
            return None

    def take(self, most: int, *, timeout_s: float | None = None) -> list[Delivery]:
        """The next delivery and what else is there already, at most so many.

            for event in events.take(100, timeout_s=5): ...

        If nothing comes within `timeout_s` it gives an empty list; None waits for as long as it takes. A reader that settles each
        delivery by itself (`attempts`, `ack_within_s`, `share`) is given one at a time.
        """
        check_take(most, timeout_s)
        first = self.next(timeout_s)
        return [] if first is None else [first, *self._fetched.here(most - 1)]

    async def _more(self, queue: deque[AsyncDelivery]) -> int:
        """What lies in the queue counts as taken: where that begins an attempt, nothing may lie there that no thread has."""
        found = await self._own.take(1 if self._own.settles_each else _TAKEN_AT_ONCE)
        queue.extend(found)
        return len(found)

    def close(self) -> None:
        """Acknowledgements are flushed. A reader with a name may come back and go on after them."""
        self._worker.run_last(self._own.close)

    def cancel(self) -> None:
        """Close for good: the reader's name and its positions are forgotten by the servers."""
        self._worker.run(self._own.cancel())


class Watch(BlockingDeliveries[AsyncWatch]):
    """Deliveries of a `watch`: stored matches first, then live ones, without a gap.

    Use it as `with space.watch(...) as events: for event in events: ...`. Without `with` it opens at the first delivery
    and closes with the space. `take` and `next` have time-outs.
    """

    @property
    def dropped(self) -> tuple[Drop, ...]:
        """What was dropped while this reader was away, as far as this watch was told: the last thousand of it."""
        return self._own.dropped


class Device(BlockingDeliveries[AsyncDevice]):
    """Commands of a `serve`: each is confirmed to its sender as soon as it is in this program's hands.

    Use it as `with space.serve(...) as commands: for command in commands: ...`. `take` and `next` have time-outs.
    """


class Reading:
    """An iterator of stored events. Threads that iterate it together share them. One that is dropped before its end
    is closed in the background: its asynchronous generator sees to that."""

    def __init__(self, own: AsyncGenerator[Batch, None], worker: Worker) -> None:
        self._own = own
        self._worker = worker
        self._fetched = Fetched(worker, functools.partial(_more_of, own, []))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivery:
        delivery = self._fetched.next()
        if delivery is None:
            raise StopIteration
        return delivery

    def close(self) -> None:
        """No more will be read."""
        self._worker.run_last(self._close)

    async def _close(self) -> None:
        await self._fetched.cut()
        await self._own.aclose()


async def _more_of(
    own: AsyncGenerator[Batch, None],
    failed: list[Exception],
    queue: deque[AsyncDelivery],
) -> int:
    """What comes together: a row that is here does not wait for others. A generator that has failed once merely ends when
    it is asked again; but no thread may take a part for the whole, so all of them are told."""
    if failed:
        raise failed[0]
    try:
        batch = await anext(own, None) or ()
    except Exception as error:
        failed.append(error)
        raise
    queue.extend(batch)
    return len(batch)


def _verb(
    method: Callable[Concatenate[AsyncSpace, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Space, P], T]:
    @twin_of(method)
    def verb(self: Space, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._worker.run(method(self._own, *args, **kwargs))

    return verb


def _opening(
    method: Callable[Concatenate[AsyncSpace, P], D], kind: type[B]
) -> Callable[Concatenate[Space, P], B]:
    @twin_of(method, kind)
    def verb(self: Space, /, *args: P.args, **kwargs: P.kwargs) -> B:
        return kind(method(self._own, *args, **kwargs), self._worker)

    return verb


def _reading(
    method: Callable[Concatenate[AsyncSpace, P], StoredEvents],
) -> Callable[Concatenate[Space, P], Reading]:
    @twin_of(method, Reading)
    def verb(self: Space, /, *args: P.args, **kwargs: P.kwargs) -> Reading:
        return Reading(method(self._own, *args, **kwargs).batches, self._worker)

    return verb


class Space:
    """The verbs: `emit`, `emit_many`, `watch`, `read`, `serve`, `command`, `command_many`. Made by
    `utuple.blocking.connect`. Each returns when it is done. Any thread may call them; after a fork, the parent's only."""

    def __init__(self, own: AsyncSpace) -> None:
        self._own = own
        self._worker = Worker(own.close, own.timeout_s + _MARGIN_S)

    def __enter__(self) -> Self:
        try:
            self._worker.run(self._own.open())
        except BaseException:
            self._worker.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every watch and device, acknowledgements flushed, then the connections. Calls of other threads end:
        those that are on their way are answered if that takes no more than a moment, the others are `Closed`."""
        self._worker.close()

    emit = _verb(AsyncSpace.emit)
    command = _verb(AsyncSpace.command)
    watch = _opening(AsyncSpace.watch, Watch)
    serve = _opening(AsyncSpace.serve, Device)
    read = _reading(AsyncSpace.read)

    @twin_of(AsyncSpace.retry)
    def retry(self, error: OutcomeUnknown) -> object:
        done = self._worker.run(self._own.retry(error))
        if isinstance(done, AsyncWatch):
            return Watch(done, self._worker)
        return Device(done, self._worker) if isinstance(done, AsyncDevice) else done

    def refresh(self, receipt: Receipt) -> Receipt:
        """The receipt of a command with a lifetime, as it stands now."""
        return self._worker.run(receipt.refresh())

    def wait(self, receipt: Receipt, timeout_s: float) -> Receipt:
        """Until all the devices that the command met have it, its lifetime is over, or so long."""
        check_timeout(timeout_s)
        return self._worker.run(receipt.wait(min(timeout_s, self._own.timeout_s)))

    def end(self, receipt: Receipt) -> Receipt:
        """Until the command's lifetime is over, however long: who has it by then, and who never will ("expired")."""
        call = self._worker.begin(receipt.end())
        try:
            return self._worker.wait(call)
        except BaseException:
            self._worker.post(call.cancel)
            raise

    @twin_of(AsyncSpace.emit_many)
    def emit_many(self, events: Iterable[Mapping[str, Any]]) -> int:
        return self._run_pipeline(self._own.emitting(events))

    @twin_of(AsyncSpace.command_many)
    def command_many(self, commands: Iterable[Mapping[str, Any]]) -> Receipts:
        return self._run_pipeline(self._own.commanding(commands))

    def _run_pipeline(self, pipeline: Pipeline[T]) -> T:
        """As `run_pipeline`, with the caller's iterable on the caller's thread."""
        try:
            while pipeline.build_next():
                self._worker.run(pipeline.send_built())
            self._worker.run(pipeline.drain())
        except Closed:
            self._worker.join()
        except BaseException as error:
            error.add_note(pipeline.so_far())
            self._worker.post(pipeline.cancel_all)
            raise
        return pipeline.outcome()


def connect(
    *managers: str,
    timeout_s: float = 30.0,
    choice: str = "adaptive",
    credentials: str | os.PathLike[str] | None = None,
) -> Space:
    """The way in for programs without an event loop.

    with utuple.blocking.connect("127.0.0.1:7400") as space:
        space.emit(subject="truck", type="load", address="truck-17", data={"kg": 1200})
    """
    return Space(
        async_connect(*managers, timeout_s=timeout_s, choice=choice, credentials=credentials)
    )
