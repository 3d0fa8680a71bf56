"""Faults, carried out wave by wave: done, undone after a while, and then it is measured how long the cluster
needs to be well again."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from benchmarks.chaos.ground import Ground
from benchmarks.chaos.probe import Probe
from benchmarks.chaos.schedule import Act, Fault, next_wave
from utuple.local.keeper import Say
from utuple.runtime.clock import monotonic_s, now_us


@dataclass(frozen=True, slots=True)
class Healed:
    """A fault that is over."""

    fault: Fault
    healed_s: float
    well_s: float | None
    """When the cluster was well again; None where nobody can tell."""


@dataclass(slots=True)
class Toll:
    """What was done so far."""

    kinds: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    recoveries_s: list[tuple[float, str]] = field(default_factory=list)
    spans_us: list[tuple[int, int]] = field(default_factory=list)
    """Of the waves, from the first fault to the last recovery: the rest was peace."""

    @property
    def faults(self) -> int:
        return self.kinds.total()

    @property
    def recovery_s_max(self) -> float:
        return max((took_s for took_s, _ in self.recoveries_s), default=0.0)

    def note(self, wave: list[Healed]) -> list[tuple[float, str]]:
        """What each recovery took."""
        took = [
            (round(recovery_s(one, wave), 2), str(one.fault))
            for one in wave
            if one.well_s is not None
        ]
        self.recoveries_s += took
        return took


def recovery_s(one: Healed, wave: list[Healed]) -> float:
    """From healing to being well. A line may need several servers: a fault that was still going on
    elsewhere starts the clock anew when it is healed."""
    if one.well_s is None:
        return 0.0
    healed_s = max(other.healed_s for other in wave if other.healed_s <= one.well_s)
    return one.well_s - healed_s


class Injector:
    def __init__(self, ground: Ground, probe: Probe, seed: int, say: Say) -> None:
        self.toll = Toll()
        self.now = ""
        """The faults of the wave that is on."""
        self._ground = ground
        self._probe = probe
        self._dice = Random(f"faults {seed}")
        self._say = say

    async def run(self, until_s: float) -> None:
        """No wave begins after this; the last one is healed and has recovered when this returns."""
        while monotonic_s() < until_s:
            wave = next_wave(self._dice, self._ground.targets)
            self.now = "; ".join(map(str, wave.faults))
            self._say(f"faults: {self.now}")
            began_us = now_us()
            took = self.toll.note(await asyncio.gather(*map(self._carry_out, wave.faults)))
            self.toll.spans_us.append((began_us, now_us()))
            self._say(f"recovered: {', '.join(f'{s:.1f} s after {what}' for s, what in took)}")
            self.now = ""
            await asyncio.sleep(wave.pause_s)

    async def _carry_out(self, fault: Fault) -> Healed:
        await asyncio.sleep(fault.after_s)
        self.toll.kinds[fault.kind] += 1
        self.toll.kills += fault.is_kill
        try:
            await self._inflict(fault)
            await asyncio.sleep(fault.for_s)
        finally:
            await self._heal(fault)
        healed_s = monotonic_s()
        return Healed(fault, healed_s, await self._probe.until_well(fault.target))

    async def _inflict(self, fault: Fault) -> None:
        match fault.act:
            case Act.KILL:
                self._ground.target(fault.target).kill()
            case Act.STOP:
                self._ground.target(fault.target).freeze()
            case Act.CUT:
                self._ground.proxies[fault.target].cut()
            case Act.STALL:
                self._ground.proxies[fault.target].stall(fault.way)
            case Act.SLOW:
                self._ground.proxies[fault.target].slow(fault.delay_s)
            case Act.LEAVE:
                await self._ground.remove_sca(fault.target)

    async def _heal(self, fault: Fault) -> None:
        match fault.act:
            case Act.KILL:
                await self._ground.target(fault.target).start()
            case Act.STOP:
                self._ground.target(fault.target).thaw()
            case Act.LEAVE:
                await self._ground.add_sca(fault.target)
            case _:
                await self._ground.proxies[fault.target].mend()
