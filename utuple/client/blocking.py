"""The same verbs without `await`: the asynchronous space runs on an event loop in a thread of its own.

Nothing is written twice: each verb here is the asynchronous one, called over there and waited for.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from utuple.client.deliveries import Deliveries
from utuple.client.delivery import Delivered
from utuple.client.delivery import Delivery as AsyncDelivery
from utuple.client.space import Space as AsyncSpace
from utuple.client.space import connect as async_connect
from utuple.errors import Closed

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", bound=Deliveries)

_TAKEN_AT_ONCE = 1_000
"""Deliveries fetched from the event loop in one go, when they are there already."""


class Delivery(Delivered):
    """One event or command; `ack()` without `await`."""

    __slots__ = ("_own", "_worker")

    def __init__(self, own: AsyncDelivery, worker: Worker) -> None:
        super().__init__(own._chunk, own._place, None)
        self._own = own
        self._worker = worker

    def ack(self) -> None:
        """Done with it: a reader with a name, started again, is not given it again. Returns at once."""
        self._worker.post(self._own._done)


class Worker:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="utuple", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it here; Ctrl-C ends the wait and the work."""
        if self._loop.is_closed():
            work.close()
            raise Closed("this space is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except (KeyboardInterrupt, SystemExit):
            future.cancel()
            concurrent.futures.wait([future], timeout=1)
            raise

    def post(self, call: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def stop(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


class BlockingDeliveries(Generic[D]):
    """A context manager and an iterator of deliveries."""

    def __init__(self, own: D, worker: Worker) -> None:
        self._own = own
        self._worker = worker
        self._taken: Iterator[AsyncDelivery] = iter(())

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
        for one in self._taken:
            return Delivery(one, self._worker)
        self._taken = iter(self._worker.run(self._own.take(_TAKEN_AT_ONCE)))
        return Delivery(next(self._taken), self._worker)

    def close(self) -> None:
        """Acknowledgements are flushed. A reader with a name may come back and go on after them."""
        self._worker.run(self._own.close())

    def cancel(self) -> None:
        """Close for good: the reader's name and its positions are forgotten by the servers."""
        self._worker.run(self._own.cancel())


def _verb(
    method: Callable[Concatenate[AsyncSpace, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Space, P], T]:
    @functools.wraps(method)
    def verb(self: Space, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._worker.run(method(self._own, *args, **kwargs))

    return verb


def _opening(
    method: Callable[Concatenate[AsyncSpace, P], D],
) -> Callable[Concatenate[Space, P], BlockingDeliveries[D]]:
    @functools.wraps(method)
    def verb(self: Space, /, *args: P.args, **kwargs: P.kwargs) -> BlockingDeliveries[D]:
        return BlockingDeliveries(method(self._own, *args, **kwargs), self._worker)

    return verb


def _reading(
    method: Callable[Concatenate[AsyncSpace, P], Any],
) -> Callable[Concatenate[Space, P], Iterator[Delivery]]:
    @functools.wraps(method)
    def verb(self: Space, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Delivery]:
        return self._each(method(self._own, *args, **kwargs))

    return verb


class Space:
    """The verbs of the asynchronous space; their documentation holds here too, without `await`."""

    def __init__(self, own: AsyncSpace) -> None:
        self._own = own
        self._worker = Worker()

    def __enter__(self) -> Self:
        try:
            self._worker.run(self._own.open())
        except BaseException:
            self._worker.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every watch and device, acknowledgements flushed, then the connections."""
        try:
            self._worker.run(self._own.close())
        finally:
            self._worker.stop()

    emit = _verb(AsyncSpace.emit)
    emit_many = _verb(AsyncSpace.emit_many)
    command = _verb(AsyncSpace.command)
    command_many = _verb(AsyncSpace.command_many)
    watch = _opening(AsyncSpace.watch)
    serve = _opening(AsyncSpace.serve)
    read = _reading(AsyncSpace.read)
    retry = _verb(AsyncSpace.retry)

    def _each(self, deliveries: Any) -> Iterator[Delivery]:
        try:
            while some := self._worker.run(_some(deliveries)):
                for one in some:
                    yield Delivery(one, self._worker)
        finally:
            self._worker.run(deliveries.aclose())


async def _some(deliveries: Any) -> list[AsyncDelivery]:
    """The next ones; none at the end."""
    found = []
    async for one in deliveries:
        found.append(one)
        if len(found) == _TAKEN_AT_ONCE:
            break
    return found


def connect(*managers: str, timeout_s: float = 30.0, choice: str = "adaptive") -> Space:
    """The way in for programs without an event loop.

    with utuple.blocking.connect("127.0.0.1:7400") as space:
        space.emit(subject="truck", type="load", address="truck-17", data={"kg": 1200})
    """
    return Space(async_connect(*managers, timeout_s=timeout_s, choice=choice))
