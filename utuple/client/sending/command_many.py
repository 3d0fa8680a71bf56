"""Simple commands to many devices: built as columns slice by slice, some slices on their way at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from utuple.client.parts import Parts
from utuple.client.routing.outcome import PendingCommands, in_row
from utuple.client.sending.pipeline import Source, reaching
from utuple.client.sending.receipt import Receipts
from utuple.client.sending.rows import Commands, simple_commands
from utuple.client.sending.simple_commands import CommandsOutcome, ScaCalls
from utuple.errors import (
    Closed,
    NotRegistered,
    OutcomeUnknown,
    UTupleError,
)

SLICE_ROWS = 2_048
SLICES_IN_FLIGHT = 4
"""Together fewer than what an sCA server holds for one gateway that serves all these devices: beyond that it
would call them not confirmed."""

Outcome = CommandsOutcome | UTupleError


class CommandPipeline:
    """One `command_many`: a receipt for each, in their order; all were answered, or it raises."""

    def __init__(
        self,
        parts: Parts,
        sca: ScaCalls,
        commands: Iterable[Mapping[str, Any]] = (),
        *,
        retry: bool = False,
    ) -> None:
        self._retry = retry
        self._parts = parts
        self._sca = sca
        self._source = Source("commands", commands)
        self._built: deque[Commands] = deque()
        self._sent: list[tuple[Commands, asyncio.Task[Outcome]]] = []
        self._in_flight: set[asyncio.Task[Outcome]] = set()
        self._rows = 0
        self._has_failed = False

    def build_next(self) -> bool:
        if self._has_failed or not (some := self._source.take(SLICE_ROWS)):
            return False
        try:
            now_us, random = self._parts.now_us(), self._parts.random_bits()
            self.add(simple_commands(some, self._rows, now_us, random))
        except Exception as error:  # noqa: BLE001  an invalid one, or a mapping of the caller's own that fails
            self._source.error = error
        return bool(self._built)

    def add(self, commands: Commands) -> None:
        self._built.append(commands)
        self._rows += len(commands.addresses)

    async def send_built(self) -> None:
        while self._built:
            if len(self._in_flight) >= SLICES_IN_FLIGHT:
                done, self._in_flight = await asyncio.wait(
                    self._in_flight, return_when=asyncio.FIRST_COMPLETED
                )
                self._has_failed |= any(_failed(task) is not None for task in done)
            commands = self._built.popleft()
            task = asyncio.create_task(self._carry(commands))
            self._sent.append((commands, task))
            self._in_flight.add(task)

    async def _carry(self, commands: Commands) -> Outcome:
        try:
            return await self._sca.carry(commands, self._parts.tries(retry=self._retry), None)
        except (NotRegistered, OutcomeUnknown, Closed) as error:
            return error

    async def drain(self) -> None:
        if self._in_flight:
            await asyncio.wait(self._in_flight)

    def cancel_all(self) -> None:
        for task in self._in_flight:
            task.cancel()

    def outcome(self) -> Receipts:
        receipts = Receipts()
        failed: list[tuple[Commands, UTupleError]] = []
        wrong: list[UTupleError] = []
        for commands, task in self._sent:
            error = _failed(task)
            if error is not None:
                failed.append((commands, error))
                continue
            outcome = task.result()
            assert isinstance(outcome, CommandsOutcome)
            wrong += [
                in_row(error, len(receipts) + row, "commands")
                for row, error in outcome.refused.items()
            ]
            receipts.add(commands, outcome.handovers)
        failed += [(commands, Closed("this space is closed")) for commands in self._built]
        less = self._less(receipts)
        if failed:
            raise reaching(self._rows, _verdict(failed, self._rows)) from less
        if less is not None:
            raise less
        if wrong:
            raise wrong[0]
        return receipts

    def so_far(self) -> str:
        sure = sum(len(commands.addresses) for commands, task in self._sent if not _failed(task))
        return f"command_many: of the first {self._rows} commands {sure} were answered for certain"

    def _less(self, receipts: Receipts) -> Exception | None:
        """Why that is not all, apart from failures on the way."""
        return self._source.failed(self._rows, len(receipts), receipts=receipts)


async def command_again(parts: Parts, sca: ScaCalls, slices: Sequence[Commands]) -> Receipts:
    """What a failed `command_many` left, with the same ids."""
    pipeline = CommandPipeline(parts, sca, retry=True)
    for one in slices:
        pipeline.add(one)
    try:
        await pipeline.send_built()
        await pipeline.drain()
    except BaseException:
        pipeline.cancel_all()
        raise
    return pipeline.outcome()


def _failed(task: asyncio.Task[Outcome]) -> UTupleError | None:
    if not task.done() or task.cancelled():
        return OutcomeUnknown("the space was closed before the answer came")
    outcome = task.result()
    return outcome if isinstance(outcome, UTupleError) else None


def _verdict(failed: Sequence[tuple[Commands, UTupleError]], rows: int) -> UTupleError:
    """One error for all: a caller must know whether some of it may have been handed over."""
    error = next((error for _, error in failed if isinstance(error, OutcomeUnknown)), failed[0][1])
    missing = sum(len(commands.addresses) for commands, _ in failed)
    if isinstance(error, NotRegistered | Closed) and missing == rows:
        return error
    said = f"{rows - missing} of {rows} commands were answered; {error}"
    return OutcomeUnknown(said, pending=PendingCommands(tuple(one for one, _ in failed)))
