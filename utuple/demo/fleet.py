"""The demo's gateways that emit and its applications that watch. Uses the public SDK only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import utuple
from utuple.client.space import Space
from utuple.demo.scenario import Asked, Event
from utuple.demo.tally import Account

BATCH = 250
"""Events that a gateway sends at once."""

Progress = Callable[[int], None]


async def emit_all(space: Space, events: Sequence[Event], progress: Progress) -> None:
    """In batches; a lost answer is asked for again, which is safe."""
    for start in range(0, len(events), BATCH):
        batch = events[start : start + BATCH]
        try:
            await space.emit_many(batch)
        except utuple.OutcomeUnknown as error:
            await space.retry(error)
        progress(len(batch))


class Application:
    """A named reader: watches, acknowledges, may stop and go on."""

    def __init__(self, space: Space, asked: Asked, account: Account, progress: Progress) -> None:
        self.asked = asked
        self.account = account
        self._space = space
        self._progress = progress
        self._task: asyncio.Task[None] | None = None

    async def come(self) -> None:
        """Returns when the watch is open."""
        opened = asyncio.Event()
        self._task = asyncio.create_task(self._watch(opened), name=self.asked.reader)
        waiting = asyncio.create_task(opened.wait())
        await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            self._task.result()

    async def leave(self) -> None:
        """As a program that stops: what it has acknowledged is not given to it again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def raise_error(self) -> None:
        """What ended the watch, if anything did."""
        if self._task is not None and self._task.done():
            self._task.result()

    async def _watch(self, opened: asyncio.Event) -> None:
        async with self._space.watch(**self.asked.arguments) as events:
            opened.set()
            async for event in events:
                self.account.came[event.data["n"]] += 1
                self.account.stored += event.stored
                self._progress(1)
                await event.ack()
