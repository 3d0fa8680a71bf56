"""A chaos run from the first start to the verdict.

start    the cluster, then its users
storm    faults and moves, until the time is over; the last wave recovers
calm     users go on a little, then the sensors end; deliveries settle
check    everything is read back, and what was written down is judged
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import utuple
from utuple.cli import transport
from utuple.cli.chaos import record
from utuple.cli.chaos.checker import Verdict, check
from utuple.cli.chaos.faults import Injector
from utuple.cli.chaos.ground import Ground
from utuple.cli.chaos.load.sensors import sensed_families
from utuple.cli.chaos.moves import Moves
from utuple.cli.chaos.probe import Probe
from utuple.cli.chaos.record import Follower, Recorder
from utuple.cli.chaos.report import Report
from utuple.cli.chaos.retelling import Retelling
from utuple.cli.local.keeper import Say, until
from utuple.runtime.clock import monotonic_s, now_us

WARM_UP_S = 3.0
"""Before the first fault: users come in."""
AFTERWARDS_S = 4.0
"""Sensors go on this long in calm: live deliveries work again, too."""
SETTLE_STRICT_S = 2.0
"""If nothing is missing even by this measure, there is nothing to wait for."""
SETTLE_S = 30.0
"""Otherwise what was alive for so long in calm must have come: the bar for a recovery."""
SETTLE_LIMIT_S = 45.0
LOOK_S = 2.0
READ_LIMIT_S = 60.0
DRIFT_S = 5.0
"""There is one clock, but what waits at a busy server is looked at so much later."""
LINES_S = 1.0
MOVES_LIMIT_S = 60.0
"""By then, in calm, every move has come to its end."""
BUG = b"Traceback (most recent call last)"
SHOW_S = 5.0

Show = Callable[[str], None]


@dataclass(slots=True)
class Run:
    ground: Ground
    seed: int
    minutes: float
    say: Say
    """For the log."""
    show: Show
    """For the person who waits."""
    epochs: int = 0
    moves: Moves = field(default_factory=Moves)
    problems: list[str] = field(default_factory=list)

    async def run(self) -> Report:
        self.show("starting the cluster")
        await self.ground.start()
        self.show(f"{self.ground.real.servers} servers are ready; users come in")
        await self.ground.let_users_in()
        probe = Probe(self.ground, self.seed)
        await probe.open()
        injector = Injector(self.ground, probe, self.seed, self.say)
        own = Recorder(record.file_of(self.ground.records, "chaos-1", 1))
        try:
            async with _meanwhile(self._watch_servers(own), self._show_progress(injector)):
                await asyncio.sleep(WARM_UP_S)
                await injector.run(monotonic_s() + self.minutes * 60)
                verdict = await self._calm(injector, own)
        finally:
            await probe.close()
            own.close()
        return self._report(verdict, injector)

    def _report(self, verdict: Verdict, injector: Injector) -> Report:
        ground = self.ground
        self.problems += [
            f"{user.name} ended by itself {user.deaths} times: see {ground.folder.log(user.name)}"
            for user in ground.users.values()
            if user.deaths
        ]
        self.problems += [f"an error nobody expected: see {log}" for log in ground.logs_with(BUG)]
        deaths = {one.name: one.deaths for one in ground.programs.values() if one.deaths}
        toll, moves, epochs = injector.toll, self.moves, self.epochs
        return Report(verdict, toll, moves, epochs, self.problems, deaths, self.seed, self.minutes)

    # --- afterwards ----------------------------------------------------------------------------------

    async def _calm(self, injector: Injector, own: Recorder) -> Verdict:
        self.show("calm: everybody comes back, deliveries settle")
        self.ground.tell_users_calm()
        await self._moves_end()
        calm_us = now_us()
        await asyncio.sleep(AFTERWARDS_S)
        self.problems += await self.ground.dismiss_users("sensors")
        settle_s = await self._settled(calm_us)
        self.show("everything is read back")
        await self._read_back(own)
        verdict = await self._judged(calm_us, settle_s)
        self.problems += await self.ground.dismiss_users("audience", "reader", "devices")
        return verdict

    async def _moves_end(self) -> None:
        await asyncio.sleep(2 * LINES_S)  # so that the last ones have been seen
        with suppress(TimeoutError):
            await asyncio.wait_for(until(lambda: not self.moves.under_way), MOVES_LIMIT_S)
        if self.moves.under_way:
            self.problems.append(f"moves that do not end: {', '.join(self.moves.under_way)}")

    async def _settled(self, calm_us: int) -> float:
        """The measure by which nothing is missing, or the one that counts."""
        deadline_s = monotonic_s() + SETTLE_LIMIT_S
        while monotonic_s() < deadline_s:
            await asyncio.sleep(LOOK_S)
            missed = (await self._judged(calm_us, SETTLE_STRICT_S)).missed
            if not missed:
                return SETTLE_STRICT_S
            self.show(f"{len(missed)} deliveries are still to come, such as {missed[0]}")
        return SETTLE_S

    async def _judged(self, calm_us: int, settle_s: float) -> Verdict:
        """In a thread: the proxies go on meanwhile."""

        def judge() -> Verdict:
            settled_us = now_us()
            history = Retelling().tell_all(self.ground.records)
            return check(history, settled_us, calm_us=calm_us, settle_s=settle_s, drift_s=DRIFT_S)

        return await asyncio.to_thread(judge)

    async def _read_back(self, own: Recorder) -> None:
        managers = self.ground.known.manager_addresses
        async with utuple.connect(*managers, timeout_s=READ_LIMIT_S) as space:
            for family in sensed_families(self.ground.real.servers):
                began_us = now_us()
                about: dict[str, Any] = {"subject": family.subject, "type": family.type}
                numbers = [event.data["n"] async for event in space.read(**about)]
                said = {"family": list(family), "began_us": began_us, "ns": numbers}
                own.write(record.READ, said)

    # --- meanwhile -----------------------------------------------------------------------------------

    async def _watch_servers(self, own: Recorder) -> None:
        """Every line a server ever holds and every move, as far as one sees by looking often."""
        seen: dict[str, list[bytes]] = {}
        while True:
            for name in self.ground.server_names:
                status = await transport.server_status(self.ground.address_of(name))
                if status is None:
                    continue
                for move in status.moves:
                    self.moves.note(move)
                lines = [line.SerializeToString() for line in status.lines]
                if lines != seen.get(name):
                    seen[name] = lines
                    self.epochs = max([self.epochs, *(line.epoch for line in status.lines)])
                    for line in lines:
                        own.write(record.LINE, {"server": name, "line": line.hex()})
            await asyncio.sleep(LINES_S)

    async def _show_progress(self, injector: Injector) -> None:
        follower, toll = Follower(self.ground.records), injector.toll
        while True:
            await asyncio.sleep(SHOW_S)
            await asyncio.to_thread(follower.look)
            self.show(
                f"registered {follower.registered:,}, delivered {follower.delivered:,}, "
                f"{toll.faults} faults ({toll.kills} kills), {self.moves.made.total()} moves, "
                f"recovery {toll.recovery_s_max:.1f} s at most; now: {injector.now or 'peace'}"
            )


@asynccontextmanager
async def _meanwhile(*work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """These go on beside the body. They never end by themselves: what ends them is a bug."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    for ended in ends:
        if isinstance(ended, Exception):
            raise ended
