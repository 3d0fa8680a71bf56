"""The demo's air conditioners and those who command them. Uses the public SDK only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from utuple.client.sending.receipt import Receipt
from utuple.client.space import Space
from utuple.demo.scenario import ROOM_POWER, Room, inside
from utuple.demo.tally import Account, Outcome
from utuple.errors import UTupleError
from utuple.model.area import Circle

SUBJECT, TYPE = ROOM_POWER
CIRCLE_LIFETIME_S = 60
"""Devices that are just connecting again get it, too."""


class NotHandedOver(UTupleError):
    """A command did not reach whom it had to reach."""


class Building:
    def __init__(
        self, space: Space, rooms: Sequence[Room], outcome: Outcome, progress: Callable[[int], None]
    ) -> None:
        self._space = space
        self._rooms = rooms
        self._outcome = outcome
        self._progress = progress
        self._tasks: list[asyncio.Task[None]] = []
        for room in rooms:
            outcome.accounts[room.address] = Account()

    async def open(self) -> None:
        """Returns when every device takes commands."""
        opened = [asyncio.Event() for _ in self._rooms]
        self._tasks = [
            asyncio.create_task(self._serve(room, event), name=room.address)
            for room, event in zip(self._rooms, opened, strict=True)
        ]
        for task, event in zip(self._tasks, opened, strict=True):
            waiting = asyncio.create_task(event.wait())
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        self.raise_error()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def raise_error(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def _serve(self, room: Room, opened: asyncio.Event) -> None:
        device = self._space.serve(
            subject=SUBJECT,
            type=TYPE,
            address=room.address,
            position=room.position,
            where={"on": bool},
        )
        async with device as commands:
            opened.set()
            async for command in commands:
                self._outcome.accounts[room.address].came[command.data["n"]] += 1
                self._progress(1)

    async def switch(self, space: Space, rooms: Sequence[Room], *, on: bool) -> None:
        """One simple command to each, all at once."""
        sent = [(room, self._number()) for room in rooms]
        for room, n in sent:
            self._outcome.accounts[room.address].expected.add(n)
        receipts = await asyncio.gather(
            *(
                space.command(
                    subject=SUBJECT, type=TYPE, address=room.address, data={"on": on, "n": n}
                )
                for room, n in sent
            )
        )
        for (room, _), receipt in zip(sent, receipts, strict=True):
            _check(receipt, [room], handed_over=1)

    async def switch_off_inside(self, space: Space, circle: Circle) -> int:
        """Every device in a place; how many there are."""
        meant, n = inside(self._rooms, circle), self._number()
        for room in meant:
            self._outcome.accounts[room.address].expected.add(n)
        receipt = await space.command(
            subject=SUBJECT,
            type=TYPE,
            area=circle,
            data={"on": False, "n": n},
            lifetime_s=CIRCLE_LIFETIME_S,
        )
        _check(receipt, meant)
        return len(meant)

    def _number(self) -> int:
        self._outcome.commands += 1
        return self._outcome.commands


def _check(receipt: Receipt, meant: Sequence[Room], handed_over: int = 0) -> None:
    """The receipt names whom brute force names."""
    named = sorted(device.address for device in receipt.devices)
    if named != sorted(room.address for room in meant) or receipt.handed_over < handed_over:
        raise NotHandedOver(f"meant for {len(meant)} devices: {receipt}")
