"""One thread, one event loop, and time that jumps: hours take no time, and the order is the seed's.

Every callback belongs to a life of a virtual process (by its context). What belongs to a dead life never
runs again, not even a `finally`: that is kill -9. What belongs to a stopped one waits: that is SIGSTOP.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, TypeVar

from utuple.runtime.clock import CLOCK

T = TypeVar("T")

START_US = 1_800_000_000_000_000
"""What true clocks show when a history begins."""

_STANDSTILL = 200_000
"""Callbacks in one instant; beyond it nothing moves but the loop: a livelock."""

_MANY_TASKS = 256


class Stuck(Exception):
    """Time stands still, or nothing will ever happen."""


class DriftingClock:
    """A machine's clock: a little too fast or too slow, and set now and then."""

    def __init__(self, loop: VirtualLoop, rate: float = 0.0, ahead_s: float = 0.0) -> None:
        self._loop = loop
        self._rate = 1.0 + rate
        self.ahead_s = ahead_s

    def now_us(self) -> int:
        return START_US + int((self._loop.now_s * self._rate + self.ahead_s) * 1e6)

    def monotonic_s(self) -> float:
        return 1_000.0 + self._loop.now_s * self._rate


class NobodysClock:
    """Outside of every life there is none: it would be the machine's, and what the seed gives would be another in
    every run."""

    def now_us(self) -> int:
        raise AssertionError("what asks for the time must be done by a process: start it in a life")

    def monotonic_s(self) -> float:
        return self.now_us()


class Life:
    """One life of one process."""

    def __init__(self, name: str, number: int, clock: DriftingClock) -> None:
        self.name = name
        self.number = number
        self.clock = clock
        self.is_alive = True
        self.is_running = True
        self.held: list[Handle] = []
        """What became due while it was stopped."""
        self._tasks: list[asyncio.Task[Any]] = []
        self._tidy_at = _MANY_TASKS
        self.context = Context()
        self.context.run(LIFE.set, self)
        self.context.run(CLOCK.set, clock)

    def __str__(self) -> str:
        return f"{self.name}#{self.number}"

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Were a dead life's tasks collected, their `finally` would run."""
        self._tasks.append(task)
        if len(self._tasks) >= self._tidy_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tidy_at = 2 * len(self._tasks) + _MANY_TASKS

    def end(self) -> None:
        self.is_alive = self.is_running = False
        self.held.clear()


LIFE: ContextVar[Life | None] = ContextVar("life", default=None)
"""The life that runs now; None: the world itself (network, faults, the test)."""


class _Task(asyncio.Task[Any]):
    """With a hash that is the same in every run: sets of tasks are iterated."""

    number: int

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other


class Handle:
    """Something that will run; asyncio's own costs several times as much."""

    __slots__ = ("args", "callback", "context", "is_cancelled")

    def __init__(self, callback: Any, args: tuple[Any, ...], context: Context) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        return self.is_cancelled


class VirtualLoop(asyncio.BaseEventLoop):
    _ready: deque[Any]
    _scheduled: list[Any]
    """By time and, where that is equal, by number."""
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.steps = 0
        self._world = Context()
        self._world.run(CLOCK.set, NobodysClock())
        self._here = 0
        self._numbers = count()

    def time(self) -> float:
        return self.now_s

    @property
    def true_us(self) -> int:
        return START_US + int(self.now_s * 1e6)

    # --- what lives ------------------------------------------------------------------------------

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None, **_: Any) -> Any:
        context = copy_context() if context is None else context
        task = _Task.__new__(_Task)
        task.number = next(self._numbers)  # before it is a member of asyncio's set of all tasks
        task.__init__(coro, loop=self, name=name or "", context=context)  # type: ignore[misc]
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        life = context.get(LIFE)
        if life is not None:
            life.keep(task)
        return task

    def start(self, life: Life, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of this life's own."""
        task: asyncio.Task[T] = self.create_task(work, context=life.context.copy())
        return task

    def run_world(self, work: Coroutine[Any, Any, T]) -> T:
        """What nobody's life does, to its end."""
        task: asyncio.Task[T] = self.create_task(work, context=self._world.copy())
        return self.run_until_complete(task)

    def later(self, delay_s: float, happen: Callable[..., object], *args: Any) -> Handle:
        """Something of the world's: it happens whoever dies."""
        handle = Handle(happen, args, self._world)
        heapq.heappush(self._scheduled, (self.now_s + delay_s, next(self._numbers), handle))
        return handle

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        handle = Handle(callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        return self.call_soon(callback, *args, context=context)  # there is one thread

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        return self.call_at(self.now_s + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        handle = Handle(callback, args, copy_context() if context is None else context)
        heapq.heappush(self._scheduled, (when, next(self._numbers), handle))
        return handle

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """There is one thread. It is done in a moment, but other things come between."""

        async def done() -> Any:
            await asyncio.sleep(0)
            return func(*args)

        return self.create_task(done())

    def stop_life(self, life: Life) -> None:
        life.is_running = False

    def continue_life(self, life: Life) -> None:
        if life.is_alive and not life.is_running:
            life.is_running = True
            held, life.held = life.held, []
            self._ready.extend(held)

    # --- how it runs -----------------------------------------------------------------------------

    def _run_once(self) -> None:
        """Until it is to stop."""
        ready, scheduled = self._ready, self._scheduled
        while True:
            if not ready and not self._stopping:
                self._jump(scheduled)
            now_s = self.now_s
            while scheduled and scheduled[0][0] <= now_s:
                ready.append(heapq.heappop(scheduled)[2])
            self.steps += len(ready)
            self._here += len(ready)
            if self._here > _STANDSTILL:
                raise Stuck(f"time stands still at {self.now_s:.3f} s")
            for _ in range(len(ready)):
                handle = ready.popleft()
                if handle.is_cancelled:
                    continue
                life = handle.context.get(LIFE)
                if life is None or life.is_running:
                    try:
                        handle.context.run(handle.callback, *handle.args)
                    except Exception as error:  # noqa: BLE001  as asyncio does
                        self.call_exception_handler({"message": "callback", "exception": error})
                elif life.is_alive:
                    life.held.append(handle)
            if self._stopping:
                return

    def _jump(self, scheduled: list[Any]) -> None:
        while scheduled and scheduled[0][2].is_cancelled:
            heapq.heappop(scheduled)
        if not scheduled:
            raise Stuck("nothing will ever happen")
        self._here = 0
        if scheduled[0][0] > self.now_s:
            self.now_s = scheduled[0][0]

    get_debug = staticmethod(bool)
    """False; each task and future asks, and this answer takes no frame."""

    def _write_to_self(self) -> None:
        """There is no other thread to wake it."""

    def _check_closed(self) -> None:
        """The last words of what is thrown away may still ask for something; nothing comes of it."""
