"""Many events in one request: lines of JSON, registered while they come. What has come while calls were on their way is the
next batch, so a gateway that trickles is answered soon and one that pours is not held up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import utuple
from utuple.cli.verbs.json_lines import events_of_lines
from utuple.doors.http.config import Limits
from utuple.doors.http.problems import Problem, problem_of, shown_value
from utuple.doors.http.verbs.body import too_large


@dataclass
class Tally:
    """Rows count from 1."""

    registered: int = 0
    refused: int = 0
    refusals: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, row: int, error: Exception, most: int) -> None:
        self.refused += 1
        if len(self.refusals) < most:
            said = {"row": row, "field": "", "value": None, "rule": str(error)}
            if isinstance(error, utuple.InvalidInput):
                own = error.field.partition("].")[2] if "[" in error.field else error.field
                said |= {"field": own, "value": shown_value(error.value), "rule": error.rule}
            self.refusals.append(said)

    def answer(self) -> dict[str, Any]:
        self.refusals.sort(key=lambda said: said["row"])
        return {
            "registered": self.registered,
            "refused": self.refused,
            "refusals": self.refusals,
        }


class Ingest:
    """One request's events."""

    def __init__(self, space: utuple.Space, limits: Limits) -> None:
        self._space = space
        self._limits = limits
        self.tally = Tally()
        self._calls: dict[asyncio.Task[None], int] = {}
        """Each with the number of its first row."""
        self._row = 1
        self._failed_at: int | None = None
        self._failure: Exception | None = None

    async def run(self, chunks: AsyncIterator[bytes]) -> dict[str, Any]:
        """The answer, when all are durable. Raises what says how far it came."""
        try:
            await self._read(chunks)
        except Problem as wrong:
            self._failed_at, self._failure = self._row, wrong
        except BaseException:
            for call in self._calls:
                call.cancel()
            raise
        await self._room(0)
        if self._failure is not None:
            problem = problem_of(self._failure)
            problem.body |= {**self.tally.answer(), "reached": self._failed_at}
            raise problem
        return self.tally.answer()

    async def _read(self, chunks: AsyncIterator[bytes]) -> None:
        rest, lines, size = b"", list[bytes](), 0
        async for chunk in chunks:
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > self._limits.body_bytes:
                raise too_large(self._limits, f"row {self._row + len(lines) + len(whole)}")
            lines += whole
            size += len(chunk)
            full = len(lines) >= self._limits.batch_rows or size >= self._limits.batch_bytes
            if lines and (full or len(self._calls) < self._limits.calls):
                await self._send(lines)
                lines, size = [], 0
            if self._failure is not None or self.tally.refused > self._limits.refusals:
                break
        else:
            if rest:
                lines.append(rest)
        if lines and self._failure is None:
            await self._send(lines)
        if self.tally.refused > self._limits.refusals and self._failure is None:
            raise Problem(
                400, "Too many refused", f"more than {self._limits.refusals} rows were refused"
            )

    async def _send(self, lines: list[bytes]) -> None:
        first, self._row = self._row, self._row + len(lines)
        numbered = [(row, line) for row, line in enumerate(lines, first) if line.strip()]
        if not numbered:
            return
        events, rows = [], []
        read = events_of_lines([line for _, line in numbered])
        for (row, _), event in zip(numbered, read, strict=True):
            if isinstance(event, utuple.InvalidInput):
                self.tally.refuse(row, event, self._limits.refusals)
            else:
                events.append(event)
                rows.append(row)
        if not events:
            return
        await self._room(self._limits.calls - 1)
        self._calls[asyncio.create_task(self._register(events, rows))] = first

    async def _register(self, events: list[dict[str, Any]], rows: list[int]) -> None:
        try:
            registered = await self._space.emit_many(events)
            self.tally.registered += registered  # after the wait: other calls count meanwhile
        except utuple.SomeRefused as error:
            self._refused(error, rows)
        except utuple.OutcomeUnknown as error:
            await self._space.retry(error)  # the same ids: it happens once
            cause = error.__cause__
            refused = len(cause.refused) if isinstance(cause, utuple.SomeRefused) else 0
            if isinstance(cause, utuple.SomeRefused):
                self._refused(utuple.SomeRefused(cause.refused, 0), rows)
            self.tally.registered += len(events) - refused

    def _refused(self, error: utuple.SomeRefused, rows: list[int]) -> None:
        self.tally.registered += error.registered
        for number, why in error.refused.items():
            self.tally.refuse(rows[number], why, self._limits.refusals)

    async def _room(self, most: int) -> None:
        """Until at most so many calls are on their way; notes the first that failed."""
        while len(self._calls) > most:
            done, _ = await asyncio.wait(self._calls, return_when=asyncio.FIRST_COMPLETED)
            for call in done:
                first, error = self._calls.pop(call), call.exception()
                if isinstance(error, utuple.UTupleError):
                    if self._failed_at is None or first < self._failed_at:
                        self._failed_at, self._failure = first, error
                elif error is not None:
                    raise error
