"""Simple commands to many devices: built as columns slice by slice, some slices on their way at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from utuple.client.attempt import PendingCommands, in_row
from utuple.client.parts import Parts
from utuple.client.receipt import Receipts
from utuple.client.rows import Commands, simple_commands
from utuple.client.simple import Met, ScaCalls
from utuple.errors import InvalidInput, NotRegistered, OutcomeUnknown, UTupleError

SLICE_ROWS = 2_048
SLICES_IN_FLIGHT = 4
"""Together fewer than what an sCA server holds for one gateway that serves all these devices: beyond that it
would call them not confirmed."""

Outcome = Met | UTupleError


async def command_iterable(
    parts: Parts, sca: ScaCalls, commands: Iterable[Mapping[str, Any]]
) -> Receipts:
    """A receipt for each: all were answered, or it raises."""
    flight = _Flight(parts, sca)
    source = iter(commands)
    invalid: InvalidInput | None = None
    try:
        while not flight.has_failed and (some := list(islice(source, SLICE_ROWS))):
            first, now_us = flight.rows, parts.now_us()
            await flight.launch(simple_commands(some, first, now_us, parts.random_bits()))
    except InvalidInput as error:
        invalid = error
    except BaseException:
        flight.abort()
        raise
    receipts = await flight.land(invalid)
    if invalid is not None:
        raise invalid
    return receipts


async def command_again(parts: Parts, sca: ScaCalls, slices: Sequence[Commands]) -> Receipts:
    """What a failed `command_many` left, with the same ids."""
    flight = _Flight(parts, sca)
    try:
        for one in slices:
            await flight.launch(one)
    except BaseException:
        flight.abort()
        raise
    return await flight.land(None)


class _Flight:
    """The slices of one `command_many`, in their order."""

    def __init__(self, parts: Parts, sca: ScaCalls) -> None:
        self._parts = parts
        self._sca = sca
        self._sent: list[tuple[Commands, asyncio.Task[Outcome]]] = []
        self._open: set[asyncio.Task[Outcome]] = set()
        self.rows = 0
        self.has_failed = False

    async def launch(self, commands: Commands) -> None:
        if len(self._open) >= SLICES_IN_FLIGHT:
            done, self._open = await asyncio.wait(self._open, return_when=asyncio.FIRST_COMPLETED)
            self.has_failed |= any(isinstance(task.result(), UTupleError) for task in done)
        task = asyncio.create_task(self._carry(commands))
        self._sent.append((commands, task))
        self._open.add(task)
        self.rows += len(commands.addresses)

    async def _carry(self, commands: Commands) -> Outcome:
        try:
            return await self._sca.carry(commands, self._parts.tries(), None)
        except (NotRegistered, OutcomeUnknown) as error:
            return error

    async def land(self, invalid: InvalidInput | None) -> Receipts:
        if self._open:
            await asyncio.wait(self._open)
        receipts = Receipts()
        failed: list[tuple[Commands, UTupleError]] = []
        wrong: list[UTupleError] = []
        for commands, task in self._sent:
            outcome = task.result()
            if isinstance(outcome, UTupleError):
                failed.append((commands, outcome))
                continue
            wrong += [
                in_row(error, len(receipts) + row, "commands")
                for row, error in outcome.refused.items()
            ]
            receipts.add(commands, outcome.handovers)
        if failed:
            raise _verdict(failed, self.rows) from invalid
        if wrong:
            raise wrong[0]
        return receipts

    def abort(self) -> None:
        """The caller has gone, or its iterable has failed."""
        for task in self._open:
            task.cancel()


def _verdict(failed: Sequence[tuple[Commands, UTupleError]], rows: int) -> UTupleError:
    """One error for all: a caller must know whether some of it may have been handed over."""
    error = next((error for _, error in failed if isinstance(error, OutcomeUnknown)), failed[0][1])
    missing = sum(len(commands.addresses) for commands, _ in failed)
    if isinstance(error, NotRegistered) and missing == rows:
        return error
    said = f"{rows - missing} of {rows} commands were answered; {error}"
    return OutcomeUnknown(said, pending=PendingCommands(tuple(one for one, _ in failed)))
