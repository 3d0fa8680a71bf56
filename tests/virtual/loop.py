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


class Life:
    """One life of one process."""

    def __init__(self, name: str, number: int, clock: DriftingClock) -> None:
        self.name = name
        self.number = number
        self.clock = clock
        self.is_alive = True
        self.is_running = True
        self.held: list[asyncio.Handle] = []
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

    def __init__(
        self, number: int, coro: Coroutine[Any, Any, Any], loop: VirtualLoop, context: Context
    ) -> None:
        self._number = number
        super().__init__(coro, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(asyncio.BaseEventLoop):
    _ready: deque[Any]
    _scheduled: list[Any]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.steps = 0
        self._world = Context()
        self._here = 0
        self._numbers = count()

    def time(self) -> float:
        return self.now_s

    @property
    def true_us(self) -> int:
        return START_US + int(self.now_s * 1e6)

    # --- what lives ------------------------------------------------------------------------------

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None, **_: Any) -> Any:
        context = context or copy_context()
        task = _Task(next(self._numbers), coro, self, context)
        if name is not None:
            task.set_name(name)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        life = context.get(LIFE)
        if life is not None:
            life.keep(task)
        return task

    def start(self, life: Life, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of this life's own."""
        task: asyncio.Task[T] = self.create_task(work, context=life.context.copy())
        return task

    def later(
        self, delay_s: float, happen: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Something of the world's: it happens whoever dies."""
        return self.call_at(self.now_s + delay_s, happen, *args, context=self._world)

    def stop_life(self, life: Life) -> None:
        life.is_running = False

    def continue_life(self, life: Life) -> None:
        if life.is_alive and not life.is_running:
            life.is_running = True
            held, life.held = life.held, []
            self._ready.extend(held)

    # --- how it runs -----------------------------------------------------------------------------

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        if not ready and not self._stopping:
            self._jump(scheduled)
        while scheduled and scheduled[0]._when <= self.now_s:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        self.steps += len(ready)
        self._here += len(ready)
        if self._here > _STANDSTILL:
            raise Stuck(f"time stands still at {self.now_s:.3f} s")
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            life = handle._context.get(LIFE)
            if life is None or life.is_running:
                handle._run()
            elif life.is_alive:
                life.held.append(handle)

    def _jump(self, scheduled: list[Any]) -> None:
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not scheduled:
            raise Stuck("nothing will ever happen")
        self._here = 0
        self.now_s = max(self.now_s, scheduled[0]._when)

    def _write_to_self(self) -> None:
        """There is no other thread to wake it."""

    def _check_closed(self) -> None:
        """The last words of what is thrown away may still ask for something; nothing comes of it."""
