"""`utuple bench help`: one hot key at its only member, many EFs stored there, EAs and new EFs arriving all the
time, and then help for processing load is ordered (docs/moving.md).

What users notice is compared with as long a time just before, in the same run: the longest silence of any
watcher, though an EA for it is registered every few milliseconds, and how long EFs were held back. E-SilboPS
(figure 13) took 1-8 s to scale out, with phases of 490 ms and 98 ms in which notifications were buffered.

The helper has users of its own, with a key that nothing happens to: what they notice is measured as well.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Answer, Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.windows import Window
from utuple.model.utuple import Family
from utuple.runtime.clock import monotonic_s, now_us
from utuple.wire import utuple_pb2 as pb

HOME, HELPER = "server-1", "server-2"
TICK_S = 0.02
"""An EA for each watcher so often: gaps are seen to this precision."""
OWN = {"rate_per_s": 50.0, "watchers": 2, "tick_s": 0.04}
"""The helper's own users: a light load, since two cores carry all of this."""
FILL_STEP = 10_000
AFTER_S = 1.0
"""What is late because of help comes within this after its end: streams open to the helper."""
MOVE_LIMIT_S = 90.0
"""Beyond the server's own limit, after which it gives the move up and says why."""
MICROSECONDS = 1_000_000
MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    efs: int = 100_000
    eas_per_s: float = 2_000.0
    new_efs_per_s: float = 1_000.0
    watchers: int = 20
    settle_s: float = 3.0
    """Under load before anything is measured."""
    before_s: float = 8.0
    """Measured without help: at least as long as help takes."""


QUICK = Size(2_000, 400.0, 200.0, 10, 0.5, 2.0)


class Help:
    targets = (
        Target("ea_refused", at_most=0, always=True),
        Target("missed", at_most=0, always=True),
        Target("gap_above_ms", at_most=100.0),
        Target("ef_held_back_ms", at_most=100.0),
        Target("help_s", at_most=2.0),
    )

    def __init__(self, options: Options) -> None:
        self.notes = {"ours": OURS_ARE_DURABLE}
        self._size = QUICK if options.quick else Size()

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(
                open_ground(place, Plan([0.0, 0.0], own_postgres=True), say)
            )
            hot, own = ground.family_at(HOME, "hot"), ground.family_at(HELPER, "own")

            async def child(module: str, family: Family, name: str, **more: float) -> Child:
                about = {"subject": family.subject, "type": family.type, **more}
                settings = {"managers": ground.managers, **about}
                started = Child(f"benchmarks.help.{module}", settings, place / f"{name}.log")
                return await stack.enter_async_context(started)

            loads = Loads(
                await child(
                    "pulse",
                    hot,
                    "pulse",
                    rate_per_s=size.eas_per_s,
                    watchers=size.watchers,
                    tick_s=TICK_S,
                ),
                await child("crowd", hot, "crowd", rate_per_s=size.new_efs_per_s),
                await child("pulse", own, "own", **OWN),
            )
            await self._fill(loads.crowd, say)
            await loads.pulse.ask("open")
            await loads.own.ask("open")
            return await self._measure(ground, hot, loads, say)

    async def _fill(self, crowd: Child, say: Say) -> None:
        left = self._size.efs - self._size.watchers
        while left > 0:
            some = min(left, FILL_STEP)
            await crowd.ask("fill", count=some)
            left -= some
            say(f"{self._size.efs - left:,} of {self._size.efs:,} EFs are registered")

    async def _measure(self, ground: Ground, hot: Family, loads: Loads, say: Say) -> Figures:
        size = self._size
        say(f"{size.eas_per_s:,.0f} EAs/s and {size.new_efs_per_s:,.0f} new EFs/s begin")
        for load in loads.all:
            await load.ask("begin")
        await asyncio.sleep(size.settle_s)
        settled_s = monotonic_s()
        await asyncio.sleep(size.before_s)
        line = await ground.line_of(hot)
        used_s = [ground.cpu_s(name) for name in (HOME, HELPER)]
        ordered_s, ordered_us = monotonic_s(), now_us()
        await ground.order_help(line, HELPER)
        say(f"help of {HOME} by {HELPER} is ordered")
        await ground.until_newer(hot, line, MOVE_LIMIT_S)
        home_s, helper_s = (ground.cpu_s(name) for name in (HOME, HELPER))
        await asyncio.sleep(2 * AFTER_S)
        move = await _ended_move(ground, HOME)
        help_s = (move.ended_us - ordered_us) / MICROSECONDS
        say(f"done after {help_s:.2f} s; counting deliveries")
        during = Window(ordered_s, ordered_s + help_s + AFTER_S)
        without = during.before(settled_s)
        windows = [[w.start_s, w.end_s] for w in (without, during)]
        seen, registered, own = [await load.ask("end", windows=windows) for load in loads.all]
        return {
            "ea_refused": seen["refused"] + own["refused"],
            "missed": seen["missed"] + own["missed"],
            "repeated": seen["repeated"] + own["repeated"],
            **_noticed(seen, registered, own),
            "ef_held_back_ms": move.held_us / MILLISECONDS,
            "help_s": help_s,
            "efs_copied": move.copied,
            "cuts": move.cuts,
            "home_cpu_s": home_s - used_s[0],
            "helper_cpu_s": helper_s - used_s[1],
            "seen_for_s": during.length_s,
            "seen_without_for_s": without.length_s,
            "eas_per_s": seen["rate_per_s"],
            "new_efs_per_s": registered["rate_per_s"],
        }


@dataclass(frozen=True, slots=True)
class Loads:
    pulse: Child
    crowd: Child
    own: Child
    """The helper's own users."""

    @property
    def all(self) -> tuple[Child, ...]:
        return self.pulse, self.crowd, self.own


async def _ended_move(ground: Ground, home: str) -> pb.MoveRecord:
    give_up_s = monotonic_s() + MOVE_LIMIT_S
    while monotonic_s() < give_up_s:
        moves = await ground.moves_at(home)
        if moves and moves[0].step == pb.DONE:
            return moves[0]
        await asyncio.sleep(AFTER_S)
    raise BenchFailed(f"the move is not done after {MOVE_LIMIT_S:g} s")


def _noticed(seen: Answer, registered: Answer, own: Answer) -> Figures:
    without, during = seen["windows"]
    ef_without, ef_during = registered["windows"]
    own_without, own_during = own["windows"]
    gap_ms = during["longest_gap_s"] * MILLISECONDS
    gap_without_ms = without["longest_gap_s"] * MILLISECONDS
    return {
        "ef_refused": registered["failed"],
        "longest_delivery_gap_ms": gap_ms,
        "gap_without_ms": gap_without_ms,
        "gap_above_ms": gap_ms - gap_without_ms,
        "longest_delay_ms": during["delay_longest_s"] * MILLISECONDS,
        "delay_without_ms": without["delay_longest_s"] * MILLISECONDS,
        "median_delay_ms": during["delay_median_s"] * MILLISECONDS,
        "median_delay_without_ms": without["delay_median_s"] * MILLISECONDS,
        "longest_ef_wait_ms": ef_during["wait_longest_s"] * MILLISECONDS,
        "ef_wait_without_ms": ef_without["wait_longest_s"] * MILLISECONDS,
        "helper_gap_ms": own_during["longest_gap_s"] * MILLISECONDS,
        "helper_gap_without_ms": own_without["longest_gap_s"] * MILLISECONDS,
    }
