"""`emit` and `emit_many`: single events are gathered, many are cut into slices; both are built as columns and sent alike."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from utuple.client.config import Config
from utuple.client.parts import Parts
from utuple.client.routing.outcome import PendingEvents, in_row
from utuple.client.routing.registrar import Failure
from utuple.client.sending.pipeline import Source, reaching
from utuple.client.sending.rows import event_columns, wrong_events
from utuple.errors import (
    Closed,
    InvalidInput,
    NotRegistered,
    OutcomeUnknown,
    Refused,
    SomeRefused,
    UTupleError,
)
from utuple.model.columns import Columns, concatenate
from utuple.runtime.tasks import Tasks

Waiter = asyncio.Future[None]
"""Of one `emit`."""

Piece = tuple[Columns, Sequence[int]]
"""Events for one call, and their numbers in the iterable."""

_FIRST_SLICE_ROWS = 256
"""The first slice of `emit_many` shows how large events are; the next ones are cut by that."""
MOST_REFUSED = 10_000
"""An iterable of rubbish is not read to its end: each refusal is kept for the caller."""


async def emit_columns(parts: Parts, columns: Columns, *, retry: bool = False) -> None:
    """Register these, or raise the one error that says what became of them."""
    failures = await parts.registrar.events(columns, parts.tries(retry=retry))
    if failures:
        raise verdict(failures, len(columns))


def sound_events(
    parts: Parts, events: Sequence[Mapping[str, Any]], first: int
) -> tuple[Columns | None, Sequence[int], dict[int, InvalidInput]]:
    """Those of the events that are sound, as columns, and their numbers; and why the others are not."""
    numbers: Sequence[int] = range(first, first + len(events))
    now_us = parts.now_us()
    random = parts.ids.after(now_us, len(events), parts.random_bits())
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


class Coalescer:
    """Single events: those that are emitted in one turn of the event loop leave together. What is answered together goes on
    together, so a program with many coroutines has many events in one turn; built, routed and sent one by one they would
    cost it ten times as much. A lonely event leaves in the same turn."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._events: list[Mapping[str, Any]] = []
        self._waiting: list[Waiter] = []
        self._tasks = Tasks()

    def emit(self, event: Mapping[str, Any]) -> Waiter:
        """Done when it is registered, or with the error that says what became of it."""
        loop = asyncio.get_running_loop()
        if not self._events:
            self._tasks.start(self._leave(), "emitting what one turn has gathered")
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
        self, events: Sequence[Mapping[str, Any]], waiting: Sequence[Waiter]
    ) -> list[tuple[Columns, list[Waiter]]]:
        """Each for a call, with those who wait for it. What is wrong has failed."""
        columns, numbers, wrong = sound_events(self._parts, events, 0)
        for number, error in wrong.items():
            field = error.field.removeprefix(f"events[{number}]").removeprefix(".")
            _fail(waiting[number], InvalidInput(field, error.value, error.rule))
        if columns is None:
            return []
        if len(columns) == 1:
            return [(columns, [waiting[numbers[0]]])]
        # Where several servers would do, each event goes its own way: none waits for another's server.
        is_one_way = self._parts.registrar.takers(columns.families) <= 1
        size = slice_rows(columns, self._parts.config) if is_one_way else 1
        parts = []
        for at in range(0, len(columns), size):
            rows = range(at, min(at + size, len(columns)))
            part = columns if len(rows) == len(columns) else columns.take(rows)
            parts.append((part, [waiting[numbers[row]] for row in rows]))
        return parts

    async def _carry(self, columns: Columns, waiting: Sequence[Waiter]) -> None:
        try:
            tries = self._parts.tries()
            failures = await self._parts.registrar.events(columns, tries, in_order=True)
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


def _fail(waiting: Waiter, error: Exception) -> None:
    if not waiting.done():  # else its caller has gone
        waiting.set_exception(error)


class EventPipeline:
    """One `emit_many`."""

    def __init__(self, parts: Parts, events: Iterable[Mapping[str, Any]]) -> None:
        self._parts = parts
        self._source = Source("events", events)
        self._built: deque[Piece] = deque()
        self._in_flight: dict[asyncio.Task[list[Failure]], Piece] = {}
        self._slice_rows = min(_FIRST_SLICE_ROWS, parts.config.batch_rows)
        self._failures: list[Failure] = []
        self._refused: dict[int, Refused] = {}
        self._rows = 0

    def build_next(self) -> bool:
        while self._goes_on and (events := self._source.take(self._slice_rows)):
            try:
                columns, numbers, wrong = sound_events(self._parts, events, self._rows)
            except Exception as error:  # noqa: BLE001  a mapping of the caller's own that fails
                self._source.error = error
                self._build_before_fault(events)
                return True
            self._rows += len(events)
            self._refused |= wrong
            if columns is not None:
                self._cut(columns, numbers)
                return True
        return False

    def _build_before_fault(self, events: list[Mapping[str, Any]]) -> None:
        """As if the iterable had failed where an event of it does."""
        for event in events:
            try:
                columns, numbers, wrong = sound_events(self._parts, [event], self._rows)
            except Exception:  # noqa: BLE001
                return
            self._rows += 1
            self._refused |= wrong
            if columns is not None:
                self._built.append((columns, numbers))

    @property
    def _goes_on(self) -> bool:
        return not self._failures and len(self._refused) < MOST_REFUSED

    def _cut(self, columns: Columns, numbers: Sequence[int]) -> None:
        """Into pieces of a call each. How large these events are says how many are taken next."""
        self._slice_rows = slice_rows(columns, self._parts.config)
        for at in range(0, len(columns), self._slice_rows):
            rows = range(at, min(at + self._slice_rows, len(columns)))
            part = columns if len(rows) == len(columns) else columns.take(rows)
            self._built.append((part, numbers[at : rows.stop]))

    async def send_built(self) -> None:
        while self._built:
            await self._make_room(self._built[0][0])
            piece = self._built.popleft()
            self._in_flight[asyncio.create_task(self._carry(*piece))] = piece

    async def _carry(self, columns: Columns, numbers: Sequence[int]) -> list[Failure]:
        found = await self._parts.registrar.events(columns, self._parts.tries())
        return [Failure(f.error, f.columns, [numbers[n] for n in f.numbers]) for f in found]

    async def _make_room(self, columns: Columns) -> None:
        """Each server that takes them has calls on their way all the time, however many there are."""
        config = self._parts.config
        wanted = config.calls_in_flight * self._parts.registrar.takers(columns.families)
        limit = min(config.most_slices_in_flight, max(config.slices_in_flight, wanted))
        if len(self._in_flight) >= limit:
            self._note(
                (await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED))[0]
            )

    async def drain(self) -> None:
        if self._in_flight:
            self._note((await asyncio.wait(self._in_flight))[0])

    def cancel_all(self) -> None:
        for task in self._in_flight:
            task.cancel()

    def _note(self, done: Iterable[asyncio.Task[list[Failure]]]) -> None:
        for task in done:
            piece = self._in_flight.pop(task)
            for failure in [_cut_off(piece)] if task.cancelled() else task.result():
                if isinstance(failure.error, Refused):
                    self._refused |= {n: in_row(failure.error, n) for n in failure.numbers}
                else:
                    self._failures.append(failure)

    def outcome(self) -> int:
        """How many are registered, if nothing went wrong."""
        self._note([task for task in self._in_flight if task.done()])
        closed = Closed("this space is closed")
        failures = [
            *self._failures,
            *(_cut_off(piece) for piece in self._in_flight.values()),
            *(Failure(closed, *piece) for piece in self._built),
        ]
        sound = self._rows - len(self._refused)
        registered = sound - sum(len(failure.columns) for failure in failures)
        less = self._less(registered)
        if failures:
            raise reaching(self._rows, verdict(failures, sound)) from less
        if less is not None:
            raise less
        return registered

    def so_far(self) -> str:
        in_flight = sum(len(columns) for columns, _ in [*self._in_flight.values(), *self._built])
        failed = sum(len(failure.columns) for failure in self._failures)
        sure = self._rows - len(self._refused) - in_flight - failed
        return f"emit_many: of the first {self._rows} events {sure} are registered for certain"

    def _less(self, registered: int) -> Exception | None:
        """Why that is not all, apart from failures on the way."""
        refusal = SomeRefused(self._refused, registered) if self._refused else None
        return self._source.failed(self._rows, registered, refused=self._refused) or refusal


def _cut_off(piece: Piece) -> Failure:
    return Failure(OutcomeUnknown("the space was closed before the answer came"), *piece)


def verdict(failures: list[Failure], rows: int) -> UTupleError:
    """One error for all: a caller must know whether something of it may be registered."""
    missing = sum(len(failure.columns) for failure in failures)
    open_ = [f for f in failures if isinstance(f.error, OutcomeUnknown | NotRegistered | Closed)]
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
