"""Devices that serve, some of which come and go, and an application that commands them."""

from __future__ import annotations

import asyncio
from typing import cast

import utuple
from benchmarks.chaos import record
from benchmarks.chaos.load.part import COME_AGAIN_S, User, settled
from benchmarks.chaos.load.scene import Machine, families, machines, random_order
from benchmarks.chaos.load.watchers import AWAY_S, STAYS_S, TAKE
from utuple.client.receiving.device import Device
from utuple.client.sending.receipt import Receipt
from utuple.client.space import Space
from utuple.runtime.clock import monotonic_s
from utuple.runtime.logs import Log

FAMILIES_OF_EACH = 1
DEVICES = 10
COMMANDS_PER_S = 3.0
WAITING = 30
"""Commands that wait for their receipt; beyond it the commander waits, too."""

_log = Log("benchmarks.chaos.load")


async def serve(user: User) -> None:
    of = families(user.part.servers, FAMILIES_OF_EACH, "aircon")
    all_ = machines(user.part.steady_dice("machines"), of, DEVICES)
    building, commander = await user.opened(), await user.opened()
    try:
        working = [_Working(user, m, building, leaves=n % 3 == 0) for n, m in enumerate(all_)]
        await asyncio.gather(_command(user, commander, all_), *(one.run() for one in working))
    finally:
        await asyncio.gather(building.close(), commander.close())


class _Working:
    def __init__(self, user: User, machine: Machine, space: Space, *, leaves: bool) -> None:
        self._user = user
        self._machine = machine
        self._space = space
        self._leaves = leaves
        self._dice = user.part.dice(machine.address)
        self._visits = 0

    async def run(self) -> None:
        stay = self._user.stay
        while not stay.over.is_set():
            if not await self._visit():
                await stay.rest(COME_AGAIN_S)
            elif self._leaves:
                await stay.away(self._dice.uniform(*AWAY_S))

    async def _visit(self) -> bool:
        self._visits += 1
        machine, part, recorder = self._machine, self._user.part, self._user.recorder
        named = machine.reader is not None
        label = machine.reader or f"{machine.address}.{part.life}.{self._visits}"
        said = {"label": label, "named": named, "machine": machine.said}
        recorder.write(record.SERVE, said)
        device = self._space.serve(**machine.arguments)
        outcome, opened = await settled(self._space, device.open)
        if outcome != "OK":
            _log.warning("could not be opened", label=label, outcome=outcome)
            await device.close()
            return False
        recorder.write(record.SERVING, {"label": label})
        try:
            await self._take(label, cast(Device, opened))
        finally:
            if not self._user.stay.over.is_set():  # else it was there to the end
                recorder.write(record.SERVED, {"label": label})
            await device.close()
        return True

    async def _take(self, label: str, device: Device) -> None:
        stay = self._user.stay
        leaves_s = monotonic_s() + self._dice.uniform(*STAYS_S)
        while not stay.over.is_set():
            if self._leaves and not stay.calm.is_set() and monotonic_s() > leaves_s:
                return
            try:
                async with asyncio.timeout(COME_AGAIN_S):
                    found = await device.take(TAKE)
            except TimeoutError:
                continue
            except utuple.ReaderReplaced as error:
                _log.error("replaced", label=label, reason=error)
                return
            numbers = [command.data["n"] for command in found]
            self._user.recorder.write(record.TOOK, {"label": label, "ns": numbers})
            for command in found:
                await command.ack()


async def _command(user: User, space: Space, to: list[Machine]) -> None:
    """Until a little after the last fault: every command can then be followed to its device."""
    dice, waiting = user.part.dice("commander"), set[asyncio.Task[None]]()
    while not (user.stay.over.is_set() or user.stay.calm.is_set()):
        number = user.next_number()
        waiting.add(asyncio.create_task(_one_command(user, space, to, number)))
        await user.stay.rest(dice.expovariate(COMMANDS_PER_S))
        if len(waiting) >= WAITING:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        done = {task for task in waiting if task.done()}
        waiting -= done
        for task in done:
            task.result()
    await asyncio.gather(*waiting)


async def _one_command(user: User, space: Space, to: list[Machine], number: int) -> None:
    order = random_order(user.part.dice(f"order-{number}"), number, to)
    user.recorder.write(record.COMMAND, order.said)
    outcome, receipt = await settled(space, lambda: space.command(**order.arguments))
    handed = []
    if isinstance(receipt, Receipt):
        handed = [device.address for device in receipt.devices if device.handed_over]
    said = {"n": number, "outcome": outcome, "handed": handed}
    user.recorder.write(record.COMMANDED, said)
