"""`utuple bench fair`: one identity far beyond its share of a uTupleServer and of an sCA server, and what another notices of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import trucks
from benchmarks.apart import others_apart
from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Answer, Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.hostile.benchmark import p99
from benchmarks.secure.benchmark import granted
from utuple.model.utuple import Family
from utuple.security.grants import Action

SERVER, SCA = "server-1", "sca-1"
_ASKED = (("registered", "not_registered"), ("commanded", "not_commanded"))
PER_S = 2_000
"""The share of one identity: of registrations, and of commands. The greedy one asks for many times that."""


@dataclass(frozen=True, slots=True)
class Size:
    turns: int = 4
    seconds: float = 8.0
    warm_up_s: float = 3.0


QUICK = Size(1, 1.0, 0.5)


@dataclass
class Found:
    emits_s: list[float] = field(default_factory=list)
    commands_s: list[float] = field(default_factory=list)
    asked: int = 0
    refused: list[str] = field(default_factory=list)

    def take(self, answer: Answer) -> None:
        self.emits_s += answer["emits_s"]
        self.commands_s += answer["commands_s"]
        self.asked += answer["asked"]
        self.refused += answer["refused"]

    @property
    def done(self) -> float:
        return (len(self.emits_s) + len(self.commands_s)) / self.asked


class Fair:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("p99_ratio", at_most=2),
            Target("rate_ratio", at_least=0.99),
            Target("refused_wrongly", at_most=0, always=True),
        )
        self.notes = {
            "ours": OURS_ARE_DURABLE,
            "greedy": f"its share is {PER_S:,} registrations and {PER_S:,} commands a second; it asks as fast as it is answered, "
            "on eight streams; the servers have a core for themselves, and elsewhere it gives way",
        }

    async def run(self, place: Path, say: Say) -> Figures:
        alone, beside, greedy = Found(), Found(), dict[str, int]()
        with others_apart() as give_own_core:
            async with AsyncExitStack() as stack:
                ground = await stack.enter_async_context(open_ground(place, _plan(), say))
                for name in (SERVER, SCA):
                    give_own_core(ground.pid_of(name))
                client, asking = await self._children(stack, ground, place)
                await client.ask("work", seconds=self._size.warm_up_s, seed=0)
                for turn in range(1, self._size.turns + 1):
                    alone.take(await client.ask("work", seconds=self._size.seconds, seed=2 * turn))
                    said, answer = await asyncio.gather(
                        asking.ask("ask", seconds=self._size.seconds),
                        client.ask("work", seconds=self._size.seconds, seed=2 * turn + 1),
                    )
                    beside.take(answer)
                    greedy = {name: greedy.get(name, 0) + count for name, count in said.items()}
                    say(f"turn {turn}: greedy {said}")
        for what in sorted({*alone.refused, *beside.refused})[:5]:
            say(f"refused: {what}")
        if not all(sum(greedy[name] for name in pair) for pair in _ASKED):
            raise BenchFailed("the greedy one did not come to ask: the machine is too busy")
        return self._figures(alone, beside, greedy)

    def _figures(self, alone: Found, beside: Found, greedy: dict[str, int]) -> Figures:
        seconds = self._size.turns * self._size.seconds
        emits = p99(beside.emits_s) / p99(alone.emits_s)
        commands = p99(beside.commands_s) / p99(alone.commands_s)
        per_s = {f"greedy_{name}_per_s": count / seconds for name, count in greedy.items()}
        return {
            "p99_ratio": max(emits, commands),
            "p99_ratio_emit": emits,
            "p99_ratio_command": commands,
            "p99_emit_ms": p99(alone.emits_s) * 1e3,
            "p99_command_ms": p99(alone.commands_s) * 1e3,
            "rate_ratio": beside.done / alone.done,
            "refused_wrongly": len(alone.refused) + len(beside.refused),
            "times_its_share": sum(greedy.values()) / seconds / (2 * PER_S),
            **per_s,
        }

    async def _children(
        self, stack: AsyncExitStack, ground: Ground, place: Path
    ) -> tuple[Child, Child]:
        line = await ground.line_of(Family(trucks.SUBJECT, trucks.TYPE))
        log = place / "clients.log"
        both = {"server": ground.address_of(SERVER), "sca": ground.address_of(SCA)}
        children = []
        for name, more in (
            ("client", {"managers": ground.managers}),
            ("greedy", {"epoch": line.epoch}),
        ):
            path = await granted(ground, place, name, (Action.COMMAND,))
            child = Child(
                f"benchmarks.fair.{name}", {**both, **more}, log, {"UTUPLE_CREDENTIALS": str(path)}
            )
            children.append(await stack.enter_async_context(child))
        client, greedy = children
        return client, greedy


def _plan() -> Plan:
    shares: dict[str, Sequence[str]] = {
        SERVER: ("--share-registrations-per-s", str(PER_S)),
        SCA: ("--share-commands-per-s", str(PER_S)),
    }
    return Plan([0.0], secure=True, scas=1, options=shares)
