"""A chaos run from the first start to the verdict.

start    the cluster, then its users
storm    faults, moves and a new server, until the time is over; the last wave recovers
calm     who is suspended returns, moves end; users go on a little, then the sensors end; deliveries settle
check    everything is read back, and what was written down is judged
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import utuple
from benchmarks.chaos import record
from benchmarks.chaos.checker import Verdict, check
from benchmarks.chaos.faults import Injector
from benchmarks.chaos.ground import Ground
from benchmarks.chaos.load.sensors import sensed_families
from benchmarks.chaos.moves import sentence
from benchmarks.chaos.ordering import Ordering
from benchmarks.chaos.probe import Probe
from benchmarks.chaos.record import Follower, Recorder
from benchmarks.chaos.report import Report
from benchmarks.chaos.retelling import Retelling
from benchmarks.chaos.schedule import additions_s
from benchmarks.chaos.sight import LOOK_S, Sight
from utuple.local.keeper import Say, until
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
JUDGE_S = 2.0
READ_LIMIT_S = 60.0
DRIFT_S = 5.0
"""There is one clock, but what waits at a busy server is looked at so much later."""
MOVES_LIMIT_S = 90.0
"""By then, in calm, every move has come to its end: one that cannot be made is given up after a minute."""
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
        sight = Sight(self.ground, own)
        ordering = Ordering(self.ground, sight, self.seed, self.minutes * 60, self.say)
        try:
            async with _meanwhile(sight.run(), self._show_progress(injector, sight)):
                await asyncio.sleep(WARM_UP_S)
                async with _meanwhile(ordering.run(), self._grow()):
                    await injector.run(monotonic_s() + self.minutes * 60)
                verdict = await self._calm(ordering, sight, own)
        finally:
            await probe.close()
            own.close()
        return self._report(verdict, injector, ordering, sight)

    def _report(
        self, verdict: Verdict, injector: Injector, ordering: Ordering, sight: Sight
    ) -> Report:
        ground, toll = self.ground, injector.toll
        self.problems += [
            f"{user.name} ended by itself {user.deaths} times: see {ground.folder.log(user.name)}"
            for user in ground.users.values()
            if user.deaths
        ]
        self.problems += [f"an error nobody expected: see {log}" for log in ground.logs_with(BUG)]
        for move, peace in sight.moves.held_back(toll.spans_us):
            when = "in peace" if peace else "among faults"
            self.say(f"held back for {move.held_us / 1000:.0f} ms {when}: move {move.id.hex()}")
        return Report(
            verdict,
            toll,
            sight.moves,
            ordering.given,
            sight.epochs,
            self.problems,
            {one.name: one.deaths for one in ground.programs.values() if one.deaths},
            self.seed,
            self.minutes,
        )

    # --- afterwards ----------------------------------------------------------------------------------

    async def _calm(self, ordering: Ordering, sight: Sight, own: Recorder) -> Verdict:
        self.show("calm: everybody comes back, moves end, deliveries settle")
        self.ground.tell_users_calm()
        await ordering.end()
        await self._moves_end(ordering, sight)
        calm_us = now_us()
        await asyncio.sleep(AFTERWARDS_S)
        self.problems += await self.ground.dismiss_users("sensors")
        settle_s = await self._settled(calm_us)
        self.show("everything is read back")
        self.problems += await ordering.all_return()  # nobody should have gone meanwhile
        await self._read_back(own)
        verdict = await self._judged(calm_us, settle_s)
        self.problems += await self.ground.dismiss_users("audience", "reader", "devices")
        return verdict

    async def _moves_end(self, ordering: Ordering, sight: Sight) -> None:
        self.problems += await ordering.all_return()
        await asyncio.sleep(2 * LOOK_S)  # so that the last ones have been seen
        with suppress(TimeoutError):
            await asyncio.wait_for(until(lambda: not sight.moves.under_way), MOVES_LIMIT_S)
        for move in sight.moves.under_way:
            self.problems.append(f"a move that does not end: {sentence(move)}")

    async def _settled(self, calm_us: int) -> float:
        """The measure by which nothing is missing, or the one that counts."""
        deadline_s = monotonic_s() + SETTLE_LIMIT_S
        while monotonic_s() < deadline_s:
            await asyncio.sleep(JUDGE_S)
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

    async def _grow(self) -> None:
        """Moves find the new servers by themselves."""
        began_s = monotonic_s()
        for at_s in additions_s(Random(f"additions {self.seed}"), self.minutes):
            await asyncio.sleep(max(0.0, began_s + at_s - monotonic_s()))
            self.show(f"{await self.ground.add_server()} is added")

    async def _show_progress(self, injector: Injector, sight: Sight) -> None:
        follower, toll = Follower(self.ground.records), injector.toll
        while True:
            await asyncio.sleep(SHOW_S)
            await asyncio.to_thread(follower.look)
            self.show(
                f"registered {follower.registered:,}, delivered {follower.delivered:,}, "
                f"{toll.faults} faults ({toll.kills} kills), {sight.moves.made.total()} moves in "
                f"{len(sight.lines)} lines, recovery {toll.recovery_s_max:.1f} s at most; "
                f"now: {injector.now or 'peace'}"
            )


@asynccontextmanager
async def _meanwhile(*work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """These go on beside the body, and end with it; an error of theirs is not passed over."""
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
