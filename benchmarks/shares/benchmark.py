"""`utuple bench shares`: every answer is true while sCA servers join, leave and are killed.

Devices of one SDK process are connected all the time; another commands them at a steady rate. Meanwhile there are one, two and
three sCA servers, which are added, removed, killed and started again. Every receipt is compared with what devices were given:

    false_receipts   "handed over" and not given, or denied ("not connected", "no device", "not registered") and given
    given_twice      to the application
    wrong_late       denied though connected, by a command that was sent 5 s after the last change or later
    wrong            the same, whenever it was sent
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.benchmark import Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground
from benchmarks.shares.comparing import Change, Told, compare, in_words


@dataclass(frozen=True, slots=True)
class Size:
    devices: int = 10_000
    rate: float = 1_000.0
    apart_s: float = 9.0
    """From one change to the next: the calm is a part of it."""
    changes: tuple[str, ...] = (
        *("kill sca-1", "start sca-1"),
        *("add", "kill sca-2", "start sca-2", "kill sca-1", "start sca-1"),
        *("add", "remove sca-1", "kill sca-3", "start sca-3", "add", "remove sca-2"),
    )


QUICK = Size(200, 50.0, 6.5, ("add", "kill sca-1", "start sca-1", "remove sca-2"))


class Shares:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("false_receipts", at_most=0, always=True),
            Target("given_twice", at_most=0, always=True),
            Target("wrong_late", at_most=0, always=True),
        )
        self.notes = {"ours": "nothing is durable: simple commands have lifetime 0"}

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        files = {name: place / f"{name}.json" for name in ("devices", "commands")}
        changes: list[Change] = []
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(
                open_ground(place, Plan([0.0, 0.0], scas=1), say)
            )
            gateway, sender = [
                await stack.enter_async_context(
                    Child(
                        "benchmarks.shares.programs",
                        {"managers": ground.managers, "file": str(file)},
                        place / f"{name}.log",
                    )
                )
                for name, file in files.items()
            ]
            say(f"serving {size.devices} devices")
            await gateway.ask("serve", count=size.devices)
            await sender.ask("begin", rate=size.rate, devices=size.devices)
            await asyncio.sleep(2.0)
            for change in size.changes:
                await _change(ground, change)
                now = await sender.ask("now")
                changes.append(Change(change, now["now_s"]))
                say(f"{change}; {now['answered']} commands answered")
                await asyncio.sleep(size.apart_s)
            await sender.ask("end")
            await gateway.ask("got")
        told = _told(files["commands"])
        for words in in_words(told, changes):
            say(words)
        return compare(told, _given(files["devices"]), changes)


async def _change(ground: Ground, change: str) -> None:
    verb, _, name = change.partition(" ")
    match verb:
        case "add":
            await ground.cluster.add_sca()
        case "remove":
            await ground.cluster.remove_sca(name)
        case "kill":
            ground.cluster.kill(name)
        case _:
            await ground.cluster.revive(name)


def _told(file: Path) -> list[Told]:
    return [Told(number, *answer) for number, answer in orjson.loads(file.read_bytes())]


def _given(file: Path) -> dict[int, int]:
    return {int(number): int(times) for number, times in orjson.loads(file.read_bytes())}
