"""Events on their way: one, or as many as an iterable gives, in slices that are built as columns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from utuple.client.attempt import PendingEvents, in_row
from utuple.client.config import Config
from utuple.client.parts import Parts
from utuple.client.registrar import Failure
from utuple.client.rows import event_columns, wrong_events
from utuple.errors import (
    InvalidInput,
    NotRegistered,
    OutcomeUnknown,
    Refused,
    SomeRefused,
    UTupleError,
)
from utuple.model.columns import Columns, concatenate

_FIRST_SLICE_ROWS = 256
"""The first slice of `emit_many` shows how large events are; the next ones are cut by that."""
MOST_REFUSED = 10_000
"""An iterable of rubbish is not read to its end: each refusal is kept for the caller."""


async def emit_columns(parts: Parts, columns: Columns, *, retry: bool = False) -> None:
    """Register these, or raise the one error that says what became of them."""
    failures = await parts.registrar.events(columns, parts.tries(retry=retry))
    if failures:
        raise verdict(failures, len(columns))


async def emit_iterable(parts: Parts, events: Iterable[Mapping[str, Any]]) -> int:
    """How many were registered: all of them, or it raises."""
    flight = _Flight(parts)
    source = iter(events)
    try:
        while flight.goes_on and (some := flight.next_slice(source)):
            await flight.launch(some)
    except BaseException:
        flight.abort()
        raise
    await flight.land()
    return flight.outcome()


def sound_events(
    parts: Parts, events: Sequence[Mapping[str, Any]], first: int
) -> tuple[Columns | None, Sequence[int], dict[int, InvalidInput]]:
    """Those of the events that are sound, as columns, and their numbers; and why the others are not."""
    numbers: Sequence[int] = range(first, first + len(events))
    now_us, random = parts.now_us(), parts.random_bits()
    try:
        return event_columns(events, first, now_us, random), numbers, {}
    except InvalidInput:
        wrong = wrong_events(events, first)
    numbers = [number for number in numbers if number not in wrong]
    sound = [events[number - first] for number in numbers]
    return event_columns(sound, 0, now_us, random) if sound else None, numbers, wrong


def slice_rows(columns: Columns, config: Config) -> int:
    """How many rows like these make a call."""
    size_bytes = max(1, len(b"".join(columns.payloads)))  # a third of what adding up would take
    fitting = len(columns) * config.batch_bytes // size_bytes
    return max(1, min(config.batch_rows, fitting))


class _Flight:
    """The slices of one `emit_many` that are on their way."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks: set[asyncio.Task[list[Failure]]] = set()
        self._slice_rows = min(_FIRST_SLICE_ROWS, parts.config.batch_rows)
        self._failures: list[Failure] = []
        self._refused: dict[int, Refused] = {}
        self._rows = 0

    @property
    def goes_on(self) -> bool:
        return not self._failures and len(self._refused) < MOST_REFUSED

    def next_slice(self, source: Iterator[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return list(islice(source, self._slice_rows))

    async def launch(self, events: list[Mapping[str, Any]]) -> None:
        columns, numbers, wrong = sound_events(self._parts, events, self._rows)
        self._refused |= wrong
        self._rows += len(events)
        if columns is None:
            return
        self._slice_rows = slice_rows(columns, self._parts.config)
        for at in range(0, len(columns), self._slice_rows):
            await self._make_room(columns)
            rows = range(at, min(at + self._slice_rows, len(columns)))
            part = columns if len(rows) == len(columns) else columns.take(rows)
            self._tasks.add(asyncio.create_task(self._carry(part, numbers[at : rows.stop])))

    async def _carry(self, columns: Columns, numbers: Sequence[int]) -> list[Failure]:
        found = await self._parts.registrar.events(columns, self._parts.tries())
        return [Failure(f.error, f.columns, [numbers[n] for n in f.numbers]) for f in found]

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
        for failure in (failure for task in done for failure in task.result()):
            if isinstance(failure.error, Refused):
                self._refused |= {n: in_row(failure.error, n) for n in failure.numbers}
            else:
                self._failures.append(failure)

    def outcome(self) -> int:
        """How many are registered, if nothing went wrong."""
        sound = self._rows - len(self._refused)
        missing = sum(len(failure.columns) for failure in self._failures)
        refusal = SomeRefused(self._refused, sound - missing) if self._refused else None
        if self._failures:
            raise verdict(self._failures, sound) from refusal
        if refusal is not None:
            raise refusal
        return sound


def verdict(failures: list[Failure], rows: int) -> UTupleError:
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
    return next((f for f in failures if isinstance(f.error, Refused)), failures[0]).error
