"""`utuple bench hostile`: each attack for 20 s against a real uTupleServer, a well-behaved client beside it."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.apart import others_apart
from benchmarks.benchmark import OURS_ARE_DURABLE, Options, Say
from benchmarks.child import Answer, Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground
from benchmarks.hostile.attacks import ATTACKS, TLS_ATTACKS
from benchmarks.machine import process_memory_bytes
from benchmarks.secure.benchmark import granted

MEGABYTE = 1 << 20
LOOK_AGAIN_S = 0.2
OWN_ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Size:
    seconds: float = 20.0
    quiet_s: float = 10.0
    warm_up_s: float = 5.0
    rest_s: float = 5.0
    """After an attack, before the quiet is measured."""


QUICK = Size(0.5, 0.5, 0.5, 0.1)


class Hostile:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("worst_growth_mb", at_most=20),
            Target("p99_ratio", at_most=2),
            Target("refused_wrongly", at_most=0, always=True),
        )
        self.notes = {
            "ours": OURS_ARE_DURABLE,
            "strangers": "on the same machine: the server has a core for itself, and elsewhere they give way",
        }

    async def run(self, place: Path, say: Say) -> Figures:
        found = Found()
        with others_apart() as give_own_core:
            for attacks, secured in ((ATTACKS, False), (TLS_ATTACKS, True)):
                own = place / ("secured" if secured else "plain")
                own.mkdir()
                own.chmod(0o755)
                async with AsyncExitStack() as stack:
                    scene = await self._scene(stack, own, say, secured=secured)
                    give_own_core(scene.pid)
                    await scene.client.ask("emit", seconds=self._size.warm_up_s, seed=0)
                    for name in attacks:
                        await self._attacked(scene, name, found, say)
        for what in sorted(set(found.refused))[:5]:
            say(f"refused: {what}")
        return found.figures()

    async def _scene(self, stack: AsyncExitStack, place: Path, say: Say, *, secured: bool) -> Scene:
        ground = await stack.enter_async_context(
            open_ground(place, Plan([0.0], secure=secured), say)
        )
        environment = {}
        if secured:
            environment["UTUPLE_CREDENTIALS"] = str(await granted(ground, place))
        server = ground.servers[0]
        address = ground.address_of(server)
        host, _, port = address.rpartition(":")
        log = place / "clients.log"
        strangers = Child("benchmarks.hostile.attacker", {"host": host, "port": int(port)}, log)
        given = {"managers": ground.managers, "server": address}
        client = Child("benchmarks.hostile.client", given, log, environment)
        for child in (strangers, client):
            await stack.enter_async_context(child)
        return Scene(ground.pid_of(server), strangers, client)

    async def _attacked(self, scene: Scene, name: str, found: Found, say: Say) -> None:
        size, number = self._size, found.count + 1
        quiet = await scene.client.ask("emit", seconds=size.quiet_s, seed=number)
        address = strangers_address(number)
        attack = asyncio.ensure_future(
            scene.strangers.ask("attack", name=name, seconds=size.seconds, own_address=address)
        )
        emits = asyncio.ensure_future(
            scene.client.ask("emit", seconds=size.seconds, seed=100 + number)
        )
        growth_mb = await _growth_mb(scene.pid, attack, emits)
        emitted, attacked = await emits, await attack
        found.take(name, quiet, emitted, growth_mb)
        say(
            f"{name}: {attacked['connections']} connections, {attacked['sent_mb']:.1f} MB sent; "
            f"{growth_mb:+.1f} MB, p99 {p99(emitted['delays_s']) * 1e3:.1f} ms "
            f"(quiet {p99(quiet['delays_s']) * 1e3:.1f}), {len(emitted['refused'])} refused"
        )
        await asyncio.sleep(size.rest_s)


@dataclass(frozen=True, slots=True)
class Scene:
    pid: int
    """Of the server that is attacked."""
    strangers: Child
    client: Child


class Found:
    def __init__(self) -> None:
        self.quiet_s: list[float] = []
        self.refused: list[str] = []
        self._attacked: dict[str, tuple[float, float]] = {}

    @property
    def count(self) -> int:
        return len(self._attacked)

    def take(self, name: str, quiet: Answer, emitted: Answer, growth_mb: float) -> None:
        self.quiet_s += quiet["delays_s"]
        self.refused += quiet["refused"] + emitted["refused"]
        self._attacked[name] = p99(emitted["delays_s"]), growth_mb

    def figures(self) -> Figures:
        """The ratio is to the quiet of the whole run: one quiet alone has too few slow ones."""
        quiet_s = p99(self.quiet_s)
        each = {
            f"{what}_{name}": value
            for name, (slow_s, growth_mb) in self._attacked.items()
            for what, value in (("ratio", slow_s / quiet_s), ("growth_mb", growth_mb))
        }
        return {
            "worst_growth_mb": max(growth_mb for _, growth_mb in self._attacked.values()),
            "p99_ratio": max(slow_s for slow_s, _ in self._attacked.values()) / quiet_s,
            "refused_wrongly": len(self.refused),
            "quiet_p99_ms": quiet_s * 1e3,
            **each,
        }


def p99(delays_s: list[float]) -> float:
    return sorted(delays_s)[int(len(delays_s) * 0.99)] if delays_s else float("inf")


async def _growth_mb(pid: int, *running: asyncio.Future[Any]) -> float:
    """The most that the process grew by while these ran."""
    before = most = process_memory_bytes(pid)
    while not all(one.done() for one in running):
        await asyncio.sleep(LOOK_AGAIN_S)
        most = max(most, process_memory_bytes(pid))
    return (most - before) / MEGABYTE


def strangers_address(number: int) -> str:
    """One for each attack, so that none is refused for what another did, where the system lets all of 127/8 be used, as Linux
    does; else that of everybody."""
    address = f"127.0.1.{number}"
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return OWN_ADDRESS
    return address
