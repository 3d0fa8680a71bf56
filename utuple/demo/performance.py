"""The demo from the first event to the last check, on a cluster that runs.

the early applications come, half of the events are emitted, late ones come meanwhile
commands go to single air conditioners
two applications leave; the server that holds the trucks is killed with -9
the emitters go on regardless, and wait for it; the two come back and go on
everything emitted is read again from the store; all in a circle are switched off
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from random import Random

import utuple
from utuple.client.space import Space
from utuple.cluster.line import first_table
from utuple.demo import scenario
from utuple.demo.fleet import Application, emit_all
from utuple.demo.rooms import Building
from utuple.demo.showing import Shown
from utuple.demo.tally import Account, Outcome
from utuple.local.keeper import Keeper
from utuple.local.running import Cluster
from utuple.model.key import key_of

SEED = 2010
"""The same demo every time: a failure can be seen again."""
VERB_LIMIT_S = 120.0
"""A server that is started again on a busy machine takes its time."""
DELIVERY_LIMIT_S = 60.0
QUIET_S = 0.5
"""After the last expected delivery: would anything come twice?"""
_LOOK_S = 0.05


class Performance:
    def __init__(self, cluster: Cluster, shown: Shown) -> None:
        dice = Random(SEED)
        self._cluster = cluster
        self._shown = shown
        self._trucks = scenario.truck_events(dice)
        self._rooms = scenario.rooms(dice)
        self._climate = scenario.climate_events(dice, self._rooms)
        actuals = scenario.actuals([*self._trucks, *self._climate])
        self._expected = {asked.reader: asked.expects(actuals) for asked in scenario.WATCHES}
        self.outcome = Outcome()

    @property
    def events(self) -> int:
        return len(self._trucks) + len(self._climate)

    @property
    def deliveries(self) -> int:
        """That must come: of events by brute force, and of commands."""
        asked = sum(len(numbers) for numbers in self._expected.values())
        return asked + 2 * len(self._rooms) + len(scenario.inside(self._rooms, scenario.TOKYO))

    async def run(self) -> Outcome:
        gateway, application, devices = (
            utuple.connect(*self._cluster.managers, timeout_s=VERB_LIMIT_S) for _ in range(3)
        )
        async with gateway, application, devices:
            readers = self._applications(application)
            building = Building(devices, self._rooms, self.outcome, self._shown.delivered)
            try:
                await self._before(gateway, readers, building)
                await self._through_the_kill(gateway, readers)
                await self._after(gateway, application, building)
                await self._until_delivered(readers, building)
            finally:
                await building.close()
                await asyncio.gather(*(reader.leave() for reader in readers))
        return self.outcome

    @property
    def _victim(self) -> Keeper:
        """The server that has the trucks."""
        key = key_of(*scenario.TRUCK_LOAD)
        lines = first_table(self._cluster.servers)
        return self._cluster.programs[next(line.home for line in lines if key in line.section)]

    def _applications(self, space: Space) -> list[Application]:
        found = []
        for asked in scenario.WATCHES:
            account = Account(self._expected[asked.reader])
            self.outcome.accounts[asked.reader] = account
            found.append(Application(space, asked, account, self._shown.delivered))
        return found

    async def _before(self, gateway: Space, readers: list[Application], building: Building) -> None:
        early = [reader for reader in readers if not reader.asked.late]
        late = [reader for reader in readers if reader.asked.late]
        await asyncio.gather(building.open(), *(reader.come() for reader in early))
        self._shown.say(f"{len(early)} applications watch, {len(self._rooms)} devices serve")
        half = len(self._trucks) // 2
        emitting = asyncio.create_task(self._emit(gateway, self._trucks[:half]))
        await asyncio.gather(*(reader.come() for reader in late))
        self._shown.say(f"{len(late)} more applications came while trucks emit")
        await building.switch(gateway, self._rooms, on=True)
        self._shown.say(f"{len(self._rooms)} air conditioners switched on, one by one")
        await emitting

    async def _through_the_kill(self, gateway: Space, readers: list[Application]) -> None:
        away = [reader for reader in readers if reader.asked.leaves]
        await asyncio.gather(*(reader.leave() for reader in away))
        half = len(self._trucks) // 2
        emitting = asyncio.create_task(self._emit(gateway, self._trucks[half:]))
        began_s = time.monotonic()
        self.outcome.killed = self._victim.name
        self._victim.signal(signal.SIGKILL)  # an accident: its keeper starts it again
        self._shown.say(f"{self.outcome.killed} killed with -9; {len(away)} applications are away")
        await asyncio.gather(emitting, self._emit(gateway, self._climate))
        self.outcome.recovery_s = time.monotonic() - began_s
        self._shown.say(f"emitters went on through it ({self.outcome.recovery_s:.1f} s)")
        await asyncio.gather(*(reader.come() for reader in away))
        self._shown.say("those who were away are back, and go on where they were")

    async def _after(self, gateway: Space, application: Space, building: Building) -> None:
        wanted = {event["data"]["n"] for event in self._trucks}
        family = scenario.TRUCK_LOAD
        stored = [
            event.data["n"]
            async for event in application.read(subject=family.subject, type=family.type)
        ]
        whole = set(stored) == wanted and len(stored) == len(wanted)
        self.outcome.recovered = whole and self._victim.is_alive and self._victim.lives > 1
        self._shown.say(f"{self.outcome.killed} has {len(stored):,} of {len(wanted):,} events")
        await building.switch(gateway, self._rooms, on=True)
        count = await building.switch_off_inside(gateway, scenario.TOKYO)
        self._shown.say(f"{count} air conditioners in a circle switched off by one command")

    async def _until_delivered(self, readers: list[Application], building: Building) -> None:
        def check() -> None:
            for reader in readers:
                reader.raise_error()
            building.raise_error()

        await until_delivered(list(self.outcome.accounts.values()), check)

    async def _emit(self, gateway: Space, events: list[scenario.Event]) -> None:
        def progress(count: int) -> None:
            self.outcome.emitted += count
            self._shown.emitted(count)

        await emit_all(gateway, events, progress)


async def until_delivered(accounts: Sequence[Account], check: Callable[[], None]) -> None:
    """All that had to come has come, and a little longer; or the limit. `check` raises what has gone wrong
    meanwhile."""
    deadline_s = time.monotonic() + DELIVERY_LIMIT_S
    while not all(account.is_complete for account in accounts):
        check()
        if time.monotonic() > deadline_s:
            return
        await asyncio.sleep(_LOOK_S)
    await asyncio.sleep(QUIET_S)
