"""Events on their way: one, or as many as an iterable gives, in slices that are built as columns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from utuple.client.config import Config
from utuple.client.parts import Parts
from utuple.client.routing.outcome import PendingEvents, in_row
from utuple.client.routing.registrar import Failure
from utuple.client.sending.rows import event_columns, wrong_events
from utuple.client.sending.slices import Source, reaching
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


class EventFlight:
    """One `emit_many`."""

    def __init__(self, parts: Parts, events: Iterable[Mapping[str, Any]]) -> None:
        self._parts = parts
        self._source = Source("events", events)
        self._loaded: deque[Piece] = deque()
        self._flying: dict[asyncio.Task[list[Failure]], Piece] = {}
        self._slice_rows = min(_FIRST_SLICE_ROWS, parts.config.batch_rows)
        self._failures: list[Failure] = []
        self._refused: dict[int, Refused] = {}
        self._rows = 0

    def load(self) -> bool:
        while self._goes_on and (events := self._source.take(self._slice_rows)):
            try:
                columns, numbers, wrong = sound_events(self._parts, events, self._rows)
            except Exception as error:  # noqa: BLE001  a mapping of the caller's own that fails
                self._source.error = error
                self._load_before_fault(events)
                return True
            self._rows += len(events)
            self._refused |= wrong
            if columns is not None:
                self._cut(columns, numbers)
                return True
        return False

    def _load_before_fault(self, events: list[Mapping[str, Any]]) -> None:
        """As if the iterable had failed where an event of it does."""
        for event in events:
            try:
                columns, numbers, wrong = sound_events(self._parts, [event], self._rows)
            except Exception:  # noqa: BLE001
                return
            self._rows += 1
            self._refused |= wrong
            if columns is not None:
                self._loaded.append((columns, numbers))

    @property
    def _goes_on(self) -> bool:
        return not self._failures and len(self._refused) < MOST_REFUSED

    def _cut(self, columns: Columns, numbers: Sequence[int]) -> None:
        """Into pieces of a call each. How large these events are says how many are taken next."""
        self._slice_rows = slice_rows(columns, self._parts.config)
        for at in range(0, len(columns), self._slice_rows):
            rows = range(at, min(at + self._slice_rows, len(columns)))
            part = columns if len(rows) == len(columns) else columns.take(rows)
            self._loaded.append((part, numbers[at : rows.stop]))

    async def launch(self) -> None:
        while self._loaded:
            await self._make_room(self._loaded[0][0])
            piece = self._loaded.popleft()
            self._flying[asyncio.create_task(self._carry(*piece))] = piece

    async def _carry(self, columns: Columns, numbers: Sequence[int]) -> list[Failure]:
        found = await self._parts.registrar.events(columns, self._parts.tries())
        return [Failure(f.error, f.columns, [numbers[n] for n in f.numbers]) for f in found]

    async def _make_room(self, columns: Columns) -> None:
        """Each server that takes them has calls on their way all the time, however many there are."""
        config = self._parts.config
        wanted = config.calls_in_flight * self._parts.registrar.takers(columns.families)
        limit = min(config.most_slices_in_flight, max(config.slices_in_flight, wanted))
        if len(self._flying) >= limit:
            self._note((await asyncio.wait(self._flying, return_when=asyncio.FIRST_COMPLETED))[0])

    async def land(self) -> None:
        if self._flying:
            self._note((await asyncio.wait(self._flying))[0])

    def abort(self) -> None:
        for task in self._flying:
            task.cancel()

    def _note(self, done: Iterable[asyncio.Task[list[Failure]]]) -> None:
        for task in done:
            piece = self._flying.pop(task)
            for failure in [_cut_off(piece)] if task.cancelled() else task.result():
                if isinstance(failure.error, Refused):
                    self._refused |= {n: in_row(failure.error, n) for n in failure.numbers}
                else:
                    self._failures.append(failure)

    def outcome(self) -> int:
        """How many are registered, if nothing went wrong."""
        self._note([task for task in self._flying if task.done()])
        closed = Closed("this space is closed")
        failures = [
            *self._failures,
            *(_cut_off(piece) for piece in self._flying.values()),
            *(Failure(closed, *piece) for piece in self._loaded),
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
        flying = sum(len(columns) for columns, _ in [*self._flying.values(), *self._loaded])
        failed = sum(len(failure.columns) for failure in self._failures)
        sure = self._rows - len(self._refused) - flying - failed
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
