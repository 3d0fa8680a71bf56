"""Single events: those that are emitted in one turn of the event loop leave together.

What is answered together goes on together, so a program with many coroutines has many events in one turn; built,
routed and sent one by one they would cost it ten times as much. A lonely event leaves in the same turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from utuple.client.parts import Parts
from utuple.client.routing.registrar import Failure
from utuple.client.sending.emit import slice_rows, sound_events, verdict
from utuple.errors import InvalidInput
from utuple.model.columns import Columns
from utuple.runtime.tasks import Tasks

Waiting = asyncio.Future[None]


class Gathering:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._events: list[Mapping[str, Any]] = []
        self._waiting: list[Waiting] = []
        self._tasks = Tasks()

    def emit(self, event: Mapping[str, Any]) -> Waiting:
        """Done when it is registered, or with the error that says what became of it."""
        loop = asyncio.get_running_loop()
        if not self._events:
            self._tasks.start(self._leave(), "gathering")
        waiting = loop.create_future()
        self._events.append(event)
        self._waiting.append(waiting)
        return waiting

    async def _leave(self) -> None:
        """When this turn is over. The last part goes on in this task: a lonely event waits for no other."""
        events, waiting = self._events, self._waiting
        self._events, self._waiting = [], []
        try:
            parts = self._parts_of(events, waiting)
        except Exception:  # noqa: BLE001  one of them is what nobody thought of: it alone hears of it
            parts = []
            for event, its in zip(events, waiting, strict=True):
                try:
                    parts += self._parts_of([event], [its])
                except Exception as error:  # noqa: BLE001
                    _fail(its, error)
        for part in parts[:-1]:
            self._tasks.start(self._carry(*part), "carrying")
        for part in parts[-1:]:
            await self._carry(*part)

    def _parts_of(
        self, events: Sequence[Mapping[str, Any]], waiting: Sequence[Waiting]
    ) -> list[tuple[Columns, list[Waiting]]]:
        """Each for a call, with those who wait for it. What is wrong has failed."""
        columns, numbers, wrong = sound_events(self._parts, events, 0)
        for number, error in wrong.items():
            field = error.field.removeprefix(f"events[{number}]").removeprefix(".")
            _fail(waiting[number], InvalidInput(field, error.value, error.rule))
        if columns is None:
            return []
        if len(columns) == 1:
            return [(columns, [waiting[numbers[0]]])]
        # Where several servers would do, each event goes where the wait is shortest.
        is_one_way = self._parts.registrar.takers(columns.families) <= 1
        size = slice_rows(columns, self._parts.config) if is_one_way else 1
        parts = []
        for at in range(0, len(columns), size):
            rows = range(at, min(at + size, len(columns)))
            part = columns if len(rows) == len(columns) else columns.take(rows)
            parts.append((part, [waiting[numbers[row]] for row in rows]))
        return parts

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
