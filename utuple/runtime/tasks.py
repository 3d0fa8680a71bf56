"""Every task has an owner: none ends unseen.

asyncio reports the error of a task that nobody awaits only when the task is thrown away; one that is kept in a list or a
field fails in silence, and what it did is not done any more. So a task is either awaited where it is made, or is one of
these:

    tasks.start(self._deliver(batch), "delivering")     once; its error is reported
    tasks.keep(self._watch, "watching")                 for ever; its error is reported, and it is begun again
    await all_ended(*map(self._open, filters))          once each; their errors are raised here
    await run_until(stop, poller.run())                 for ever; its end is the end of the program

`tests/test_house.py` lists the places that make a task otherwise, each with who awaits it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from utuple.runtime.backoff import Backoff
from utuple.runtime.clock import monotonic_s

T = TypeVar("T")

Report = Callable[[str, BaseException, float | None], None]
"""The task's name, its error, and seconds until it is begun again, if it is."""


class Tasks:
    def __init__(self, report: Report | None = None) -> None:
        """Without `report`, the loop's exception handler is told: by default it logs, with the traceback."""
        self._report = report or _tell_loop
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(list(self._tasks))

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def keep(self, begin: Callable[[], Coroutine[Any, Any, None]], name: str) -> asyncio.Task[None]:
        """Until it returns or is cancelled. What it did before it failed is for the next one to find."""
        return self.start(self._keep(begin, name), name)

    async def close(self) -> None:
        """Cancel them, and wait until they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, begin: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        backoff = Backoff()
        while True:
            began_s = monotonic_s()
            try:
                return await begin()
            except Exception as error:  # noqa: BLE001  whatever it is, the work must go on
                backoff = backoff.after_death(monotonic_s() - began_s)
                self._report(name, error, backoff.wait_s)
            await asyncio.sleep(backoff.wait_s)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._report(task.get_name(), error, None)


async def all_ended(*work: Coroutine[Any, Any, T]) -> list[T]:
    """All at once. It returns or raises when the last one has ended, so that none goes on unseen; of several errors the first one
    is raised."""
    results = await asyncio.gather(*work, return_exceptions=True)
    done: list[T] = []
    for one in results:
        if isinstance(one, BaseException):
            raise one
        done.append(one)
    return done


async def run_until(stop: asyncio.Event, *work: Coroutine[Any, Any, None]) -> None:
    """Run these until asked to stop. One that ends before that has a bug, and ends the program with its error: whoever
    supervises it starts it again, which is better than a program that does half of its work."""
    tasks = [asyncio.create_task(job) for job in work]
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((*tasks, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
                raise RuntimeError(f"{task.get_coro()} has ended by itself")
    finally:
        for job in (*tasks, stopping):
            job.cancel()
        await asyncio.gather(*tasks, stopping, return_exceptions=True)


def _tell_loop(name: str, error: BaseException, again_s: float | None) -> None:
    then = "" if again_s is None else f"; it is begun again in {again_s:g} s"
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"task {name} failed{then}", "exception": error}
    )
