"""`utuple bench hotkey`: all load on one (subject, type), which a traditional DHT cannot spread.

Servers work a fixed artificial time on each uTuple and do nothing else in it, so that two cores can show
eight of them. Measured are, in one cluster and always under load:

    the hot key on 1, 2, 4, 8 members, each step made by ordering help (docs/moving.md)
    a key as hot that gets no help: the same servers, and it stays at its one home; nothing moves meanwhile, and
        messages between servers are counted
    a key on four members of which one is slow: the adaptive against the random choice (BlueDove III-B)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.benchmark import OURS_ARE_DURABLE, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from utuple.model.utuple import Family
from utuple.runtime.clock import monotonic_s

MOVE_LIMIT_S = 90.0
ADAPTIVE, RANDOM, UNORDERED = "adaptive", "random", "unordered"


@dataclass(frozen=True, slots=True)
class Size:
    members: Sequence[int] = (1, 2, 4, 8)
    service_us: float = 20_000.0
    """50 uTuples/s a server: eight of them are far from what two cores can carry, also when others use
    them."""
    slowdown: float = 3.0
    """Of the slow member."""
    policy_members: int = 4
    """The slow one among them."""
    clients: int = 2
    """Processes that do not know of each other's load."""
    sensors: int = 12
    """Of all clients together, for each member: all have something waiting all the time."""
    policy_sensors: int = 4
    """The same for the policies: so few that a member is idle when its share waits for the slow one. With
    many sensors every policy keeps every member busy."""
    settle_s: float = 3.0
    """After each change: queues fill, loads are known."""
    window_s: float = 8.0
    turns: int = 2
    """Of each policy, one after the other."""


QUICK = Size((1, 2), 5_000.0, 3.0, 2, 1, 12, 4, 0.5, 1.0, 1)


class HotKey:
    def __init__(self, options: Options) -> None:
        self.notes = {"ours": OURS_ARE_DURABLE}
        self._size = size = QUICK if options.quick else Size()
        self._most = most = max(size.members)
        self._helpers = [f"server-{number}" for number in range(1, most + 1)]
        self._slow = f"server-{most + 1}"
        self.targets = (
            Target("ea_refused", at_most=0, always=True),
            Target("messages_between_servers", at_most=0, always=True),
            Target(f"scaling_{most}", at_least=0.9 * most),
            Target(f"no_help_{most}", at_most=1.2),
            Target("adaptive_over_random", at_least=1.1),
        )

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        service_us = [size.service_us] * self._most + [size.service_us * size.slowdown]
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan(service_us), say))
            clients = [
                await stack.enter_async_context(
                    Child(
                        "benchmarks.hotkey.emitters",
                        {"managers": ground.managers},
                        place / f"client-{number}.log",
                    )
                )
                for number in range(size.clients)
            ]
            return await self._measure(ground, Clients(clients, size), say)

    async def _measure(self, ground: Ground, clients: Clients, say: Say) -> Figures:
        found: dict[str, float] = {}
        hot = ground.family_at(self._helpers[0], "hot")
        await clients.begin(hot, ADAPTIVE, self._sensors(self._size.members[0]))
        for members in self._size.members:
            await _help_up_to(ground, hot, self._helpers[:members])
            await clients.grow(self._sensors(members))
            found[f"throughput_{members}"] = await clients.throughput_per_s()
            say(f"{members} servers: {found[f'throughput_{members}']:.0f} EAs/s")
        await clients.end()
        alone = ground.family_at(self._helpers[1], "alone")
        await clients.begin(alone, ADAPTIVE, self._sensors(self._most))
        said = await ground.said_between_servers()
        found["throughput_no_help"] = await clients.throughput_per_s()
        messages = await ground.said_between_servers() - said
        say(f"{self._most} servers without help: {found['throughput_no_help']:.0f} EAs/s")
        await clients.end()
        found |= await self._policies(ground, clients, say)
        one = found["throughput_1"]
        most = self._most
        return {
            "ea_refused": clients.refused,
            "messages_between_servers": messages,
            f"scaling_{most}": found[f"throughput_{most}"] / one,
            f"no_help_{most}": found["throughput_no_help"] / one,
            "adaptive_over_random": found["throughput_adaptive"] / found["throughput_random"],
            "ordered_over_unordered": found["throughput_adaptive"] / found["throughput_unordered"],
            **found,
        }

    async def _policies(self, ground: Ground, clients: Clients, say: Say) -> dict[str, float]:
        size = self._size
        family = ground.family_at(self._helpers[-1], "policy")
        fast = self._helpers[::-1][: size.policy_members - 1]
        await _help_up_to(ground, family, [*fast, self._slow])
        sensors = size.policy_sensors * size.policy_members
        seen: dict[str, list[float]] = {ADAPTIVE: [], RANDOM: [], UNORDERED: []}
        for choice in (ADAPTIVE, RANDOM, UNORDERED) * size.turns:
            await clients.begin(family, choice, sensors)
            seen[choice].append(await clients.throughput_per_s())
            await clients.end()
            say(f"one of {size.policy_members} slow, {choice}: {seen[choice][-1]:.0f} EAs/s")
        return {f"throughput_{choice}": mean(rates) for choice, rates in seen.items()}

    def _sensors(self, members: int) -> int:
        return self._size.sensors * members


async def _help_up_to(ground: Ground, family: Family, names: Sequence[str]) -> None:
    """One helper after the other, while the load goes on."""
    line = await ground.line_of(family)
    for name in names:
        if line.member(name) is None:
            await ground.order_help(line, name)
            line = await ground.until_newer(family, line, MOVE_LIMIT_S)


class Clients:
    """The load generators, asked all at once."""

    def __init__(self, children: Sequence[Child], size: Size) -> None:
        self._children = children
        self._size = size
        self.refused = 0

    async def begin(self, family: Family, choice: str, sensors: int) -> None:
        of_each = self._share(sensors)
        await asyncio.gather(
            *(
                child.ask(
                    "begin",
                    subject=family.subject,
                    type=family.type,
                    choice=choice,
                    sensors=of_each,
                )
                for child in self._children
            )
        )

    async def grow(self, sensors: int) -> None:
        of_each = self._share(sensors)
        await asyncio.gather(*(child.ask("grow", sensors=of_each) for child in self._children))

    async def throughput_per_s(self) -> float:
        await asyncio.sleep(self._size.settle_s)
        window = [monotonic_s(), monotonic_s() + self._size.window_s]
        await asyncio.sleep(self._size.window_s)
        answers = await asyncio.gather(
            *(child.ask("rate", window=window) for child in self._children)
        )
        return float(sum(answer["per_s"] for answer in answers))

    async def end(self) -> None:
        answers = await asyncio.gather(*(child.ask("end") for child in self._children))
        self.refused = sum(answer["refused"] for answer in answers)

    def _share(self, sensors: int) -> int:
        return max(1, sensors // len(self._children))
