"""Events on their way: one, or as many as an iterable gives, in slices that are built as columns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from utuple.client.attempt import PendingEvents, in_row
from utuple.client.parts import Parts
from utuple.client.registrar import Failure
from utuple.client.rows import event_columns
from utuple.errors import InvalidInput, NotRegistered, OutcomeUnknown, Refused, UTupleError
from utuple.model.columns import Columns, concatenate

_FIRST_SLICE_ROWS = 256
"""The first slice of `emit_many` shows how large events are; the next ones are cut by that."""


async def emit_one(parts: Parts, event: Mapping[str, Any]) -> None:
    try:
        columns = event_columns([event], 0, parts.now_us(), parts.random_bits())
    except InvalidInput as error:
        field = error.field.removeprefix("events[0]").removeprefix(".")
        raise InvalidInput(field, error.value, error.rule) from None
    await emit_columns(parts, columns)


async def emit_columns(parts: Parts, columns: Columns, *, retry: bool = False) -> None:
    """Register these, or raise the one error that says what became of them."""
    failures = await parts.registrar.events(columns, parts.tries(retry=retry))
    if failures:
        raise verdict(failures, len(columns))


async def emit_iterable(parts: Parts, events: Iterable[Mapping[str, Any]]) -> int:
    """How many were registered: all of them, or it raises."""
    flight = _Flight(parts)
    invalid: InvalidInput | None = None
    source = iter(events)
    try:
        while not flight.failures and (some := flight.next_slice(source)):
            await flight.launch(some)
    except InvalidInput as error:
        invalid = error
    except BaseException:
        flight.abort()
        raise
    await flight.land()
    if flight.failures:
        raise verdict(flight.failures, flight.rows, many=True) from invalid
    if invalid is not None:
        raise invalid
    return flight.rows


class _Flight:
    """The slices of one `emit_many` that are on their way."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks: set[asyncio.Task[list[Failure]]] = set()
        self._slice_rows = min(_FIRST_SLICE_ROWS, parts.config.batch_rows)
        self.failures: list[Failure] = []
        self.rows = 0

    def next_slice(self, source: Iterator[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return list(islice(source, self._slice_rows))

    async def launch(self, events: list[Mapping[str, Any]]) -> None:
        parts, first = self._parts, self.rows
        columns = event_columns(events, first, parts.now_us(), parts.random_bits())
        size_bytes = max(1, sum(map(len, columns.payloads)))
        fitting = len(events) * parts.config.batch_bytes // size_bytes
        self._slice_rows = max(1, min(parts.config.batch_rows, fitting))
        for at in range(0, len(columns), self._slice_rows):
            await self._make_room(columns)
            rows = range(at, min(at + self._slice_rows, len(columns)))
            part = columns if len(rows) == len(columns) else columns.take(rows)
            self._tasks.add(asyncio.create_task(self._carry(part, first + at)))
        self.rows += len(columns)

    async def _carry(self, columns: Columns, first: int) -> list[Failure]:
        found = await self._parts.registrar.events(columns, self._parts.tries())
        return [Failure(f.error, f.columns, [first + n for n in f.numbers]) for f in found]

    async def _make_room(self, columns: Columns) -> None:
        """Each server that takes them has calls on their way all the time, however many there are."""
        config = self._parts.config
        wanted = config.calls_in_flight * self._parts.registrar.takers(columns.families)
        limit = min(config.most_slices_in_flight, max(config.slices_in_flight, wanted))
        if len(self._tasks) >= limit:
            done, self._tasks = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            self._note(done)

    async def land(self) -> None:
        if self._tasks:
            done, self._tasks = await asyncio.wait(self._tasks)
            self._note(done)

    def abort(self) -> None:
        """The caller has gone, or its iterable has failed."""
        for task in self._tasks:
            task.cancel()

    def _note(self, done: set[asyncio.Task[list[Failure]]]) -> None:
        for task in done:
            self.failures += task.result()


def verdict(failures: list[Failure], rows: int, *, many: bool = False) -> UTupleError:
    """One error for all: a caller must know whether something of it may be registered."""
    missing = sum(len(failure.columns) for failure in failures)
    open_ = [f for f in failures if isinstance(f.error, OutcomeUnknown | NotRegistered)]
    some_unknown = any(isinstance(failure.error, OutcomeUnknown) for failure in open_)
    if open_ and (some_unknown or missing < rows):
        pending = PendingEvents(concatenate([failure.columns for failure in open_]))
        error = next(
            (f.error for f in open_ if isinstance(f.error, OutcomeUnknown)), open_[0].error
        )
        said = (
            f"{rows - missing} of {rows} events are registered; {error}" if rows > 1 else str(error)
        )
        return OutcomeUnknown(said, pending=pending)
    worst = next((f for f in failures if isinstance(f.error, Refused)), failures[0])
    return in_row(worst.error, worst.numbers[0]) if many else worst.error
