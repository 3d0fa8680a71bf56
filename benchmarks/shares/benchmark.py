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
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.benchmark import Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Ground, Plan, open_ground

CALM_S = 5.0
DENIED = ("not connected", "no device", "not registered")


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
        changed_s: list[float] = []
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
                changed_s.append(now["now_s"])
                say(f"{change}; {now['answered']} commands answered")
                await asyncio.sleep(size.apart_s)
            await sender.ask("end")
            await gateway.ask("got")
        return _compared(files["commands"], files["devices"], changed_s)


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


def _compared(commands: Path, devices: Path, changed_s: list[float]) -> dict[str, float]:
    given = {int(number): int(times) for number, times in orjson.loads(devices.read_bytes())}
    said: Counter[str] = Counter()
    false = wrong = late = 0
    took_s: list[float] = []
    for number, (began_s, ended_s, word) in orjson.loads(commands.read_bytes()):
        said[word] += 1
        took_s.append(ended_s - began_s)
        is_given = number in given
        false += (word == "handed over" and not is_given) or (word in DENIED and is_given)
        if word in DENIED:
            wrong += 1
            late += not any(began_s - CALM_S < at_s < ended_s for at_s in changed_s)
    took_s.sort()
    return {
        "commands": len(took_s),
        "handed_over": said["handed over"],
        "not_confirmed": said["not confirmed"] + said["unknown"],
        "false_receipts": false,
        "given_twice": sum(times > 1 for times in given.values()),
        "wrong_late": late,
        "wrong": wrong,
        "p50_ms": took_s[len(took_s) // 2] * 1e3,
        "p99_ms": took_s[len(took_s) * 99 // 100] * 1e3,
        "longest_s": took_s[-1],
    }
