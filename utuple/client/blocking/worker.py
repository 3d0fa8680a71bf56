"""An event loop in a thread of its own: where the asynchronous space lives that a blocking one calls.

Callers are any threads, at any moment: while another closes, at Ctrl-C, in a garbage collector's finalizer, after a
fork, while the interpreter ends. Two rules make this safe. Work is accepted under a lock and not after closing has
begun, and whatever was accepted is settled at the latest when the thread ends: so nobody waits for an answer that
cannot come. And the loop is touched by its own thread only, also when it is shut down.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from utuple.errors import Closed, OutcomeUnknown, UTupleError, WrongContext
from utuple.runtime.logs import Log

T = TypeVar("T")

LOOK_S = 1.0
"""A waiting caller looks this often whether the loop's thread is still there."""
CUT_S = 1.0
"""What is still running when the space has been closed is cancelled, and given this long to end."""
CUTS = 2
"""How often: some tasks begin another when they are cancelled, to say goodbye."""
CLOSE_S = 15.0
"""How long `close` waits in all. Far more than the parts of closing may take together; it is for a loop that is held
up, which would otherwise hold up its caller as well."""

_log = Log("utuple.client.blocking.worker")


class Call(Generic[T]):
    """Work on the event loop, and what came of it."""

    __slots__ = ("_work", "answer", "task")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work: Coroutine[Any, Any, T] | None = work
        self.task: asyncio.Task[T] | None = None
        self.answer: concurrent.futures.Future[T] = concurrent.futures.Future()

    def begin(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            self.task = asyncio.get_running_loop().create_task(work)
            self.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[T]) -> None:
        # The task dies here and not with a caller: a Ctrl-C that came while asyncio's weak references to it are
        # cleared would be lost to its thread.
        self.task = None
        error = _closed() if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)
        elif not self.answer.done():
            self.answer.set_result(task.result())

    def fail(self, error: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def cut(self) -> None:
        """Cancelled, and over."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])

    def drop(self) -> None:
        """It was never begun."""
        if self._work is not None:
            self._work.close()


class Worker:
    def __init__(self, finish: Callable[[], Coroutine[Any, Any, None]], limit_s: float) -> None:
        """`finish` is run on the loop before it ends; `limit_s` is what `run` waits for an answer."""
        self._finish = finish
        self._limit_s = limit_s
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop = asyncio.Event()
        self._calls: set[Call[Any]] = set()
        self._is_closing = False
        self._error: BaseException | None = None

    # --- work --------------------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it here. Whatever ends the wait (Ctrl-C, a signal handler that raises) ends the work."""
        call = self.begin(work)
        try:
            return self.wait(call, self._limit_s)
        except BaseException:
            self.post(call.cancel)
            raise

    def begin(self, work: Coroutine[Any, Any, T]) -> Call[T]:
        """Several threads may wait for it, or none."""
        call = Call(work)
        try:
            self.check()
            with self._lock:
                if self._is_closing:
                    raise _closed()
                self._started().call_soon_threadsafe(call.begin)
                self._calls.add(call)
        except BaseException:
            call.drop()
            raise
        call.answer.add_done_callback(lambda _: self._calls.discard(call))
        return call

    def wait(self, call: Call[T], limit_s: float | None = None) -> T:
        """Its outcome. Without a limit for as long as it takes; even so the wait ends when the loop does."""
        self.check()
        until_s = None if limit_s is None else time.monotonic() + limit_s
        while True:
            left_s = LOOK_S if until_s is None else until_s - time.monotonic()
            try:
                return call.answer.result(min(LOOK_S, max(0.0, left_s)))
            except TimeoutError:
                if call.answer.done():  # it came just now, or the error is its own
                    return call.answer.result()
            if self._thread is None or not self._thread.is_alive():
                call.fail(_closed())
            elif left_s <= 0:
                raise OutcomeUnknown(
                    f"may or may not have happened: no answer within {limit_s:g} s, since the thread that "
                    "talks to the cluster is held up"
                )

    def is_settled(self, call: Call[T], until_s: float) -> bool:
        """Has it ended by then (of `time.monotonic`)? It goes on if not."""
        self.check()
        while not call.answer.done() and (left_s := until_s - time.monotonic()) > 0:
            concurrent.futures.wait([call.answer], min(LOOK_S, left_s))
            if self._thread is None or not self._thread.is_alive():
                call.fail(_closed())
        return call.answer.done()

    def post(self, tell: Callable[[], object]) -> None:
        """Call this on the loop, soon. Nobody waits, so it may be used anywhere; after closing it does nothing."""
        if self._loop is not None and not self._is_over:
            try:
                self._loop.call_soon_threadsafe(tell)
            except RuntimeError:  # it was closed just now
                return

    def check(self) -> None:
        """Raises where a wait could not end."""
        if self._process != os.getpid():
            raise WrongContext(
                f"this space belongs to process {self._process}, from which this one was forked: "
                "connect a space of its own here"
            )
        if sys.is_finalizing():
            raise Closed("this space is closed: the interpreter is ending")
        if self._thread is not None and self._thread.ident == threading.get_ident():
            raise WrongContext(
                "a blocking verb was called by code that runs on the space's own event loop; it would "
                "wait for itself"
            )

    # --- its end -----------------------------------------------------------------------------------

    def run_last(self, closing: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Close something, unless it was closed with the space, or there is nothing to close here."""
        if not self._is_over:
            with suppress(Closed):
                self.run(closing())

    def close(self) -> None:
        """From any thread, any number of times: all return when it is closed. In a forked child, and when the
        interpreter ends, there is nothing to close."""
        if self._is_over:
            return
        with self._lock:
            self._is_closing = True
        self.post(self._stop.set)
        self.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def join(self) -> None:
        """Closing has begun: until whatever was accepted is settled."""
        thread = self._thread
        if thread is None or thread is threading.current_thread() or self._is_over:
            return
        thread.join(CLOSE_S)
        if thread.is_alive():
            _log.warning("closing takes too long; it goes on by itself", waited_s=CLOSE_S)

    @property
    def _is_over(self) -> bool:
        return self._process != os.getpid() or sys.is_finalizing()

    def _started(self) -> asyncio.AbstractEventLoop:
        """Begun with the first work: a space that is never used has no thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._work, args=(self._loop,), name="utuple", daemon=True
            )
            self._thread.start()
        return self._loop

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_until_complete(self._until_closed())
            loop.run_until_complete(self._calls_ended())
            for _ in range(CUTS):
                loop.run_until_complete(_ended_soon(asyncio.all_tasks(loop)))
            with suppress(TimeoutError):
                loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), CUT_S))
        finally:
            with self._lock:
                self._is_closing = True
                calls = list(self._calls)
            for call in calls:
                call.drop()
                call.fail(_closed())
            loop.close()

    async def _calls_ended(self) -> None:
        """By themselves, since only they know whether something of theirs was sent."""
        tasks = [call.task for call in list(self._calls) if call.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=CUT_S)

    async def _until_closed(self) -> None:
        await self._stop.wait()
        try:
            await self._finish()
        except (UTupleError, OSError) as error:
            self._error = error


async def _ended_soon(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancelled: what does not end even then is left behind."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=CUT_S)


def _closed() -> Closed:
    return Closed("this is closed, or its space is")
