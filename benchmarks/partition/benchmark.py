"""`utuple bench partition`: one hot key with many selective EFs on four members: every member keeps all of them (help), or each
its share (a layout, docs/moving.md).

Two clusters, one after the other, are filled with the same EFs, the second one partitioned before. Compared are what a member's
memory grows by, how fast EFs are registered, and how fast EAs are. In the first, the key is then partitioned while EAs and new EFs
arrive, and what its watchers notice is compared with as long a time just before.

All servers share this machine's cores. So a rate says what the whole cluster spends on an EF or EA; with a machine for each server the
busiest member would decide, which is the home: its own share of the processor is told apart.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Answer, Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.help.crowd import LENGTH
from benchmarks.machine import process_memory_bytes
from benchmarks.windows import Window
from utuple.admin.choice import layout_of
from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind
from utuple.model.utuple import Family
from utuple.runtime.clock import monotonic_s

MEMBERS = 4
FIELD = "kg"
"""EFs ask for a span of it, and it is what is cut."""
FILL_STEP = 25_000
CALLS = 4
"""Of 500 EFs, at once. With twelve a machine at a load of 30 did not answer all in time."""
MOVE_LIMIT_S = 90.0
FORGET_LIMIT_S = 120.0
_LOOK_AGAIN_S = 0.5
AFTER_S = 1.0
"""What is late because of the move comes within this after its end."""
TICK_S = 0.02
MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    efs: int = 300_000
    matches: float = 3.0
    """EFs that an EA meets."""
    eas_per_s: float = 2_000.0
    new_efs_per_s: float = 1_000.0
    watchers: int = 20
    settle_s: float = 3.0
    window_s: float = 10.0
    before_s: float = 6.0


QUICK = Size(3_000, 3.0, 400.0, 200.0, 5, 0.5, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one cluster."""

    memory: dict[str, float]
    """Bytes an EF, of each member."""
    efs_per_s: float
    ef_cpu_us: dict[str, float]
    eas_per_s: float
    ea_cpu_us: dict[str, float]


class Partition:
    targets = (
        Target("ef_memory_ratio", at_most=0.45),
        Target("ef_registration_ratio", at_least=1.8),
        Target("match_ratio", at_least=1.0),
        Target("missed", at_most=0, always=True),
        Target("ea_refused", at_most=0, always=True),
        Target("gap_above_ms", at_most=100.0),
    )

    def __init__(self, options: Options) -> None:
        self.notes = {"ours": OURS_ARE_DURABLE}
        self._size = QUICK if options.quick else Size()

    async def run(self, place: Path, say: Say) -> Figures:
        found: dict[str, Seen] = {}
        noticed: Figures = {}
        for name in ("help", "partitioned"):
            (place / name).mkdir()
            async with AsyncExitStack() as stack:
                ground = await stack.enter_async_context(
                    open_ground(place / name, Plan([0.0] * MEMBERS), say)
                )
                one = _OneCluster(ground, self._size, place / name, stack, say)
                found[name] = await one.filled(is_partitioned=name == "partitioned")
                if name == "help":
                    noticed = await one.moved()
        return {**_compared(found["help"], found["partitioned"]), **noticed}


class _OneCluster:
    def __init__(
        self, ground: Ground, size: Size, place: Path, stack: AsyncExitStack, say: Say
    ) -> None:
        self._ground = ground
        self._size = size
        self._place = place
        self._stack = stack
        self._say = say
        self._family = ground.family_at(ground.servers[0], "hot")

    async def filled(self, *, is_partitioned: bool) -> Seen:
        """The EFs are there, and EAs have met them."""
        line = await self._helped()
        if is_partitioned:
            await self._partitioned(line)
            await self._until_forgotten()
        width = LENGTH * self._size.matches / self._size.efs
        self._crowd = await self._child(
            "help.crowd", rate_per_s=self._size.new_efs_per_s, range_width=width
        )
        memory = self._memory()
        used_s = self._cpu_s()
        took_s = await self._fill()
        efs = self._size.efs
        ef_cpu_us = {name: (now - used_s[name]) / efs * 1e6 for name, now in self._cpu_s().items()}
        grown = {name: (now - memory[name]) / efs for name, now in self._memory().items()}
        return Seen(grown, efs / took_s, ef_cpu_us, *await self._emitted())

    async def moved(self) -> Figures:
        """The key is partitioned under load."""
        size = self._size
        pulse = await self._child(
            "help.pulse",
            rate_per_s=size.eas_per_s,
            watchers=size.watchers,
            tick_s=TICK_S,
            range_length=LENGTH,
        )
        await pulse.ask("open")
        self._say(f"{size.eas_per_s:,.0f} EAs/s and {size.new_efs_per_s:,.0f} new EFs/s begin")
        for load in (pulse, self._crowd):
            await load.ask("begin")
        await asyncio.sleep(size.settle_s)
        settled_s = monotonic_s()
        await asyncio.sleep(size.before_s)
        ordered_s = monotonic_s()
        await self._partitioned(await self._ground.line_of(self._family))
        move_s = monotonic_s() - ordered_s
        self._say(f"partitioned after {move_s:.2f} s")
        await asyncio.sleep(size.before_s)
        during = Window(ordered_s, monotonic_s())
        without = during.before(settled_s)
        windows = [[w.start_s, w.end_s] for w in (without, during)]
        seen = await pulse.ask("end", windows=windows)
        registered = await self._crowd.ask("end", windows=windows)
        return _noticed(seen, registered, move_s)

    # --- the line ------------------------------------------------------------------------------------

    async def _helped(self) -> Line:
        """All are on in the key's section, which has no EFs yet."""
        line = await self._ground.line_of(self._family)
        for name in self._ground.servers[1:]:
            await self._ground.order_help(line, name)
            line = await self._ground.until_newer(self._family, line, MOVE_LIMIT_S)
        return line

    async def _partitioned(self, line: Line) -> Line:
        others = len(line.accumulatable) - 1
        cuts = ":".join(f"{LENGTH * part / others:.1f}" for part in range(1, others))
        layout = layout_of(line, f"data.{FIELD}:{cuts}")
        move = Move(
            MoveKind.PARTITION,
            line.section,
            line.epoch,
            line.home,
            why="benchmark",
            layout=layout,
        )
        await self._ground.order(move)
        return await self._ground.until_newer(self._family, line, MOVE_LIMIT_S)

    async def _until_forgotten(self) -> None:
        """Nothing is left of the time before: EFs visit their keepers alone."""
        give_up_s = monotonic_s() + FORGET_LIMIT_S
        while (await self._ground.line_of(self._family)).past:
            if monotonic_s() > give_up_s:
                raise BenchFailed(f"earlier layouts are remembered after {FORGET_LIMIT_S:g} s")
            await asyncio.sleep(_LOOK_AGAIN_S)

    # --- load ----------------------------------------------------------------------------------------

    async def _child(self, module: str, **more: float) -> Child:
        family: Family = self._family
        about = {"subject": family.subject, "type": family.type, "field": FIELD, **more}
        settings = {"managers": self._ground.managers, **about}
        started = Child(f"benchmarks.{module}", settings, self._place / f"{module}.log")
        return await self._stack.enter_async_context(started)

    async def _fill(self) -> float:
        took_s = 0.0
        for at in range(0, self._size.efs, FILL_STEP):
            some = min(FILL_STEP, self._size.efs - at)
            answer = await self._crowd.ask("fill", count=some, calls=CALLS)
            took_s += some / answer["per_s"]
            self._say(f"{at + some:,} of {self._size.efs:,} EFs, {answer['per_s']:,.0f} a second")
        return took_s

    async def _emitted(self) -> tuple[float, dict[str, float]]:
        """EAs a second, and what each of them costs each member."""
        emitters = await self._child("partition.emitters", length=LENGTH)
        await emitters.ask("begin")
        await asyncio.sleep(self._size.settle_s)
        used_s, began_s = self._cpu_s(), monotonic_s()
        await asyncio.sleep(self._size.window_s)
        window = [began_s, monotonic_s()]
        now_s = self._cpu_s()
        answer = await emitters.ask("end", window=window)
        per_s = answer["per_s"]
        self._say(f"{per_s:,.0f} EAs/s")
        if answer["refused"]:
            raise BenchFailed(f"{answer['refused']} EAs were refused")
        count = per_s * (window[1] - window[0])
        return per_s, {name: (now_s[name] - used_s[name]) / count * 1e6 for name in used_s}

    def _memory(self) -> dict[str, int]:
        ground = self._ground
        return {name: process_memory_bytes(ground.pid_of(name)) for name in ground.servers}

    def _cpu_s(self) -> dict[str, float]:
        return {name: self._ground.cpu_s(name) for name in self._ground.servers}


def _compared(help_: Seen, cut: Seen) -> Figures:
    home, *others = help_.memory
    return {
        "ef_memory_ratio": mean(cut.memory.values()) / mean(help_.memory.values()),
        "ef_registration_ratio": cut.efs_per_s / help_.efs_per_s,
        "match_ratio": cut.eas_per_s / help_.eas_per_s,
        "home_memory_ratio": cut.memory[home] / help_.memory[home],
        "others_memory_ratio": mean(cut.memory[one] for one in others)
        / mean(help_.memory[one] for one in others),
        "home_ef_cpu_ratio": _ratio(cut.ef_cpu_us[home], help_.ef_cpu_us[home]),
        "ef_cpu_ratio": _ratio(sum(cut.ef_cpu_us.values()), sum(help_.ef_cpu_us.values())),
        "ea_cpu_ratio": _ratio(sum(cut.ea_cpu_us.values()), sum(help_.ea_cpu_us.values())),
        "help_bytes_an_ef": mean(help_.memory.values()),
        "help_efs_per_s": help_.efs_per_s,
        "partitioned_efs_per_s": cut.efs_per_s,
        "help_eas_per_s": help_.eas_per_s,
        "partitioned_eas_per_s": cut.eas_per_s,
        "help_ef_cpu_us": sum(help_.ef_cpu_us.values()),
        "help_ea_cpu_us": sum(help_.ea_cpu_us.values()),
        "partitioned_home_ea_cpu_us": cut.ea_cpu_us[home],
    }


def _ratio(one: float, other: float) -> float:
    """0 where the system does not tell."""
    return one / other if other else 0.0


def _noticed(seen: Answer, registered: Answer, move_s: float) -> Figures:
    without, during = seen["windows"]
    ef_without, ef_during = registered["windows"]
    gap_ms = during["longest_gap_s"] * MILLISECONDS
    gap_without_ms = without["longest_gap_s"] * MILLISECONDS
    return {
        "missed": seen["missed"],
        "repeated": seen["repeated"],
        "ea_refused": seen["refused"],
        "ef_refused": registered["failed"],
        "gap_above_ms": gap_ms - gap_without_ms,
        "longest_delivery_gap_ms": gap_ms,
        "gap_without_ms": gap_without_ms,
        "longest_ef_wait_ms": ef_during["wait_longest_s"] * MILLISECONDS,
        "ef_wait_without_ms": ef_without["wait_longest_s"] * MILLISECONDS,
        "partition_s": move_s,
    }
