"""Is it well again? Asked after each fault, as a user would: what the fault had touched must serve its key.

server, postgres   an event is emitted to a key that the server is a member for, and read back: a read
                   needs every member that is not suspended
manager            that manager has the whole table
sca                a simple command is handed over to a device
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from itertools import count
from random import Random
from typing import Any

import utuple
from benchmarks.chaos.ground import Ground
from benchmarks.chaos.schedule import role_of
from utuple.admin import transport
from utuple.client.space import Space
from utuple.cluster.line import Line
from utuple.errors import UTupleError
from utuple.model.key import key_of
from utuple.model.utuple import Family
from utuple.runtime.clock import monotonic_s
from utuple.wire.cluster import line_from_wire

ATTEMPT_S = 3.0
"""Of one verb: what hangs longer is asked anew."""
AGAIN_S = 0.1
GIVE_UP_S = 90.0
"""Far beyond the bar: what has not recovered by then is reported as it is."""
LIFETIME_S = 20.0
FAMILIES = [Family("probe", f"p-{number}") for number in range(512)]
DEVICE = ("probe-device", "power", "probe")


class Probe:
    def __init__(self, ground: Ground, seed: int) -> None:
        self._ground = ground
        self._dice = Random(f"probe {seed}")
        self._numbers = count(1)
        self._space: Space | None = None
        self._stack = AsyncExitStack()
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        addresses = self._ground.known.manager_addresses
        self._space = await self._stack.enter_async_context(
            utuple.connect(*addresses, timeout_s=ATTEMPT_S)
        )
        self._serving = asyncio.create_task(self._serve(self._space))

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        await self._stack.aclose()

    async def until_well(self, target: str) -> float | None:
        """When it was, on the monotonic clock; None where nobody can tell, or it never was."""
        if role_of(target) not in ("server", "postgres", "manager", "sca"):
            return None
        deadline_s = monotonic_s() + GIVE_UP_S
        while not await self.is_well(target):
            if monotonic_s() > deadline_s:
                return deadline_s
            await asyncio.sleep(AGAIN_S)
        return monotonic_s()

    async def is_well(self, target: str) -> bool:
        try:
            async with asyncio.timeout(2 * ATTEMPT_S):
                match role_of(target):
                    case "manager":
                        address = self._ground.proxies[target].address
                        answer = await transport.table(address)
                        return answer is not None and answer.whole
                    case "sca":
                        return await self._commands()
                    case _:
                        return await self._serves(f"server-{target.rpartition('-')[2]}")
        except (UTupleError, TimeoutError):
            return False

    async def _serves(self, server: str) -> bool:
        assert self._space is not None
        lines = await self.lines()
        its = [line for line in lines if any(one.name == server for one in line.serving)]
        if not its:  # it has nothing to serve: then it is well when it says so
            status = await transport.server_status(self._ground.proxies[server].address)
            return status is not None and status.state == "serving"
        known = [f for f in FAMILIES if any(key_of(*f) in line.section for line in its)]
        if not known:
            return True
        family = self._dice.choice(known)
        number = next(self._numbers)
        about: dict[str, Any] = {"subject": family.subject, "type": family.type}
        await self._space.emit(**about, address="probe", data={"n": number}, lifetime_s=LIFETIME_S)
        return [True async for _ in self._space.read(**about, where={"n": number})] == [True]

    async def lines(self) -> list[Line]:
        """The table, from whichever manager has the whole of it."""
        managers = self._ground.real.manager_addresses
        for answer in await asyncio.gather(*map(transport.table, managers)):
            if answer is not None and answer.whole:
                return [line_from_wire(line) for line in answer.lines]
        raise utuple.Unavailable("no manager has the whole table")

    # --- the sCA server --------------------------------------------------------------------------------

    async def _commands(self) -> bool:
        assert self._space is not None
        subject, type_, address = DEVICE
        receipt = await self._space.command(subject=subject, type=type_, address=address, data={})
        return receipt.handed_over == 1

    async def _serve(self, space: Space) -> None:
        subject, type_, address = DEVICE
        while True:
            try:
                async with space.serve(subject=subject, type=type_, address=address) as commands:
                    async for _ in commands:
                        pass
            except UTupleError:
                await asyncio.sleep(AGAIN_S)
