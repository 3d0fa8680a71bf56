"""The hot key from the first event to the last release, on a cluster of its own.

applications watch one (subject, type); its line is shown as it is: one server
meters overload it; the load monitor has another server help, looks again, and another (figure 3)
the load has spread, and is measured; then it goes
the helpers go off, and leave when what they took has expired (Appendix A.3)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from random import Random

import utuple
from utuple.client.space import Space
from utuple.demo import overload
from utuple.demo.fleet import Application
from utuple.demo.meters import Meters
from utuple.demo.overload import METER_POWER
from utuple.demo.performance import SEED, VERB_LIMIT_S, until_delivered
from utuple.demo.scenario import actuals
from utuple.demo.showing import Shown
from utuple.demo.sight import Seen, Sight
from utuple.demo.tally import Account, HotKey, rates_per_s

LOOK_LIMIT_S = 60.0
HELP_LIMIT_S = 120.0
"""Until the first helper is in the line: some seconds where the machine has nothing else to do."""
SPREAD_LIMIT_S = 60.0
"""Until no more helpers come. After that it goes on with those there are."""
MEASURED_EVENTS = 800
"""Five seconds, which is how far back a server's busy share looks."""
MEASURE_LIMIT_S = 60.0
RELEASE_LIMIT_S = 240.0
"""Off one after the other, expired, counted as empty, out one after the other."""

Check = Callable[[], None]


class Overload:
    def __init__(self, at: Sequence[str], shown: Shown) -> None:
        self._at = at
        self._shown = shown
        self._sight = Sight(at, METER_POWER, shown)
        self._readers: list[Application] = []
        self.outcome = HotKey("/".join(METER_POWER))

    async def run(self) -> HotKey:
        gateway, application = (utuple.connect(*self._at, timeout_s=VERB_LIMIT_S) for _ in range(2))
        async with gateway, application:
            meters = Meters(gateway, Random(SEED))
            try:
                await self._before(application)
                is_helped = await self._under_load(meters)
                await meters.end()
                ended_s = time.monotonic()
                self._expect(meters)
                if is_helped:
                    await self._until_released(ended_s)
                accounts = [reader.account for reader in self._readers]
                await until_delivered(accounts, self._check)
            finally:
                await meters.leave()
                await asyncio.gather(*(reader.leave() for reader in self._readers))
        return self.outcome

    # --- one after the other

    async def _before(self, space: Space) -> None:
        for asked in overload.WATCHES:
            account = self.outcome.accounts[asked.reader] = Account()
            self._readers.append(Application(space, asked, account, _nothing))
        await asyncio.gather(*(reader.come() for reader in self._readers))
        self._shown.say(f"{len(self._readers)} applications watch {self.outcome.key}")
        self._shown.say("the assignment table (section, epoch, servers; 1: takes new events):")
        seen, _ = await self._sight.until(_always, LOOK_LIMIT_S, self._check)
        self.outcome.before = seen.said
        self._shown.say(f"{seen.line.home} is in charge of {self.outcome.key}, alone")

    async def _under_load(self, meters: Meters) -> bool:
        """Whether help came."""

        def check() -> None:
            self._check()
            meters.raise_error()

        began_s = time.monotonic()
        meters.begin()
        self._shown.say(
            f"{overload.METERS} meters want to emit {overload.WANTED_PER_S:.0f} events/s of it; waiting "
            f"for the load monitor to find help (at most {HELP_LIMIT_S:.0f} s)"
        )
        seen, is_helped = await self._sight.until(_is_helped, HELP_LIMIT_S, check)
        elapsed_s = time.monotonic() - began_s
        self.outcome.alone_per_s = len(meters.events) / elapsed_s
        self.outcome.after, self.outcome.moves = seen.said, seen.moves
        if not is_helped:
            self._shown.say(f"NO HELP came in {elapsed_s:.0f} s: {_loads(seen)}")
            return False
        self.outcome.helped_s = elapsed_s
        self._shown.say(
            f"alone, {seen.line.home} took {self.outcome.alone_per_s:.0f} events/s; waiting until nobody "
            f"is overloaded or everybody helps (at most {SPREAD_LIMIT_S:.0f} s)"
        )
        await self._sight.until(_is_spread, SPREAD_LIMIT_S, check)
        await self._measure(meters, check)
        return True

    async def _measure(self, meters: Meters, check: Check) -> None:
        target = len(meters.events) + MEASURED_EVENTS
        self._shown.say(f"measuring where the next {MEASURED_EVENTS:,} events go")
        first, _ = await self._sight.until(_all_answer, LOOK_LIMIT_S, check)

        def is_enough(seen: Seen) -> bool:
            return len(meters.events) >= target and _all_answer(seen)

        last, _ = await self._sight.until(is_enough, MEASURE_LIMIT_S, check)
        rates = rates_per_s(first.registered, last.registered, last.at_s - first.at_s)
        members = [member.name for member in last.line.members]
        outcome = self.outcome
        outcome.after = last.said
        outcome.spread_per_s = {name: rates.get(name, 0.0) for name in members}
        outcome.busy = {name: last.busy.get(name, 0.0) for name in members}
        each = ", ".join(
            f"{name} {rate:.0f}/s ({outcome.busy[name]:.0%} busy)"
            for name, rate in outcome.spread_per_s.items()
        )
        self._shown.say(
            f"load has spread: {each}; together {sum(outcome.spread_per_s.values()):.0f}/s"
        )

    async def _until_released(self, ended_s: float) -> None:
        self._shown.say(
            "the load is gone; waiting for the helpers to go off and, when what they took has expired "
            f"({overload.LIFETIME_S} s), to leave (at most {RELEASE_LIMIT_S:.0f} s)"
        )
        seen, is_released = await self._sight.until(_is_alone, RELEASE_LIMIT_S, self._check)
        self.outcome.moves = seen.moves
        if is_released:
            self.outcome.released = seen.said
            self.outcome.released_s = time.monotonic() - ended_s
            self._shown.say(f"{seen.line.home} is alone again")
        else:
            self._shown.say(f"NOT RELEASED in {RELEASE_LIMIT_S:.0f} s: {seen.said}")

    # --- accounts

    def _expect(self, meters: Meters) -> None:
        """By brute force."""
        self.outcome.emitted = len(meters.events)
        events = actuals(meters.events)
        for reader in self._readers:
            reader.account.expected |= reader.asked.expects(events)

    def _check(self) -> None:
        for reader in self._readers:
            reader.raise_error()


def _nothing(count: int) -> None:
    """No bar shows these deliveries."""


def _always(seen: Seen) -> bool:
    return True


def _all_answer(seen: Seen) -> bool:
    """On a very busy machine a server may not say in time how much it has registered."""
    return all(member.name in seen.registered for member in seen.line.members)


def _is_helped(seen: Seen) -> bool:
    return len(seen.line.accumulatable) > 1


def _is_spread(seen: Seen) -> bool:
    """Everybody helps, or it is enough."""
    on = seen.line.accumulatable
    is_enough = all(seen.processing.get(name, 1.0) < overload.THRESHOLD for name in on)
    return len(on) == overload.SERVERS or (len(on) > 1 and is_enough)


def _is_alone(seen: Seen) -> bool:
    return len(seen.line.members) == 1


def _loads(seen: Seen) -> str:
    """Why the monitor saw no reason."""
    loads = (f"{name} {load:.2f}" for name, load in sorted(seen.processing.items()))
    return f"the load monitor sees {', '.join(loads) or 'nothing'}, and helps from {overload.THRESHOLD}"
