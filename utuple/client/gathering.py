"""Single events: those that are emitted in one turn of the event loop leave together.

What is answered together goes on together, so a program with many coroutines has many events in one turn; built,
routed and sent one by one they would cost it ten times as much. A lonely event leaves in the same turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from utuple.client.emitting import slice_rows, sound_events, verdict
from utuple.client.parts import Parts
from utuple.client.registrar import Failure
from utuple.errors import InvalidInput
from utuple.model.columns import Columns

Waiting = asyncio.Future[None]


class Gathering:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._events: list[Mapping[str, Any]] = []
        self._waiting: list[Waiting] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def emit(self, event: Mapping[str, Any]) -> Waiting:
        """Done when it is registered, or with the error that says what became of it."""
        loop = asyncio.get_running_loop()
        if not self._events:
            loop.call_soon(self._leave)
        waiting = loop.create_future()
        self._events.append(event)
        self._waiting.append(waiting)
        return waiting

    def _leave(self) -> None:
        events, waiting = self._events, self._waiting
        self._events, self._waiting = [], []
        try:
            self._launch(events, waiting)
        except Exception:  # noqa: BLE001  one of them is what nobody thought of: it alone hears of it
            for event, its in zip(events, waiting, strict=True):
                try:
                    self._launch([event], [its])
                except Exception as error:  # noqa: BLE001
                    _fail(its, error)

    def _launch(self, events: Sequence[Mapping[str, Any]], waiting: Sequence[Waiting]) -> None:
        columns, numbers, wrong = sound_events(self._parts, events, 0)
        for number, error in wrong.items():
            field = error.field.removeprefix(f"events[{number}]").removeprefix(".")
            _fail(waiting[number], InvalidInput(field, error.value, error.rule))
        if columns is None:
            return
        # Where several servers would do, each event goes where the wait is shortest.
        is_lonely = len(columns) == 1
        is_one_way = is_lonely or self._parts.registrar.takers(columns.families) <= 1
        size = slice_rows(columns, self._parts.config) if is_one_way and not is_lonely else 1
        for at in range(0, len(columns), size):
            rows = range(at, min(at + size, len(columns)))
            part = columns if len(rows) == len(columns) else columns.take(rows)
            task = asyncio.create_task(self._carry(part, [waiting[numbers[row]] for row in rows]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, columns: Columns, waiting: Sequence[Waiting]) -> None:
        try:
            failures = await self._parts.registrar.events(columns, self._parts.tries())
        except asyncio.CancelledError:
            for one in waiting:
                one.cancel()
            raise
        except Exception as error:  # noqa: BLE001  a bug: for those who wait to hear of
            for one in waiting:
                _fail(one, error)
            return
        for failure in failures:
            for row, number in enumerate(failure.numbers):
                single = Failure(failure.error, failure.columns.take([row]), [number])
                _fail(waiting[number], verdict([single], 1))
        for one in waiting:
            if not one.done():
                one.set_result(None)


def _fail(waiting: Waiting, error: Exception) -> None:
    if not waiting.done():  # else its caller has gone
        waiting.set_exception(error)
