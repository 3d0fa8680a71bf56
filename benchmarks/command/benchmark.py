"""`utuple bench command`: simple commands to a million devices.

matcher       the sCA server's matcher alone, on one core
known         `command_many` of one SDK process to all devices, which are known to the sCA server and away
handed over   the same to devices that another SDK process serves: each command is delivered and confirmed
              before its receipt; the others are known all the while
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground


@dataclass(frozen=True, slots=True)
class Size:
    devices: int = 1_000_000
    served: int = 1_000
    """Of them, by one program."""
    commands: int = 200_000
    matched: int = 1_000_000
    warm_up: int = 20_000


QUICK = Size(20_000, 100, 5_000, 50_000, 1_000)
SCA = "sca-1"


class Command:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("matcher_per_s", at_least=500_000),
            Target("known_per_s", at_least=50_000),
            Target("handed_over_per_s", at_least=50_000),
            Target("not_handed_over", at_most=0, always=True),
        )
        self.notes = {
            "ours": "nothing is durable: simple commands have lifetime 0; a receipt says what was confirmed"
        }

    async def run(self, place: Path, say: Say) -> Figures:
        found = await self._matcher(place, say)
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0], scas=1), say))
            settings = {"managers": ground.managers, "sca": ground.address_of(SCA)}
            sender, gateway = [
                await stack.enter_async_context(
                    Child("benchmarks.command.programs", settings, place / f"{name}.log")
                )
                for name in ("sender", "gateway")
            ]
            size = self._size
            say(f"serving {size.served} devices, registering {size.devices}")
            await gateway.ask("serve", count=size.served)
            answer = await sender.ask("register", first=size.served, count=size.devices)
            found["registered_per_s"] = answer["per_s"]
            for name, rooms in (("known", size.devices), ("handed_over", size.served)):
                await self._send(sender, size.warm_up, rooms, seed=0)
                before_s = ground.cpu_s(SCA)
                answer = await self._send(sender, size.commands, rooms, seed=1)
                found[f"{name}_per_s"] = answer["per_s"]
                found[f"{name}_client_cpu_us"] = answer["cpu_us"]
                found[f"{name}_server_cpu_us"] = (
                    (ground.cpu_s(SCA) - before_s) / size.commands * 1e6
                )
                if answer["matched"] != size.commands:
                    raise BenchFailed(f"{size.commands - answer['matched']} commands met no device")
                say(f"{name}: {answer['per_s']:.0f} commands/s")
            await sender.ask("make", count=size.warm_up, rooms=size.devices, seed=2)
            singly = await sender.ask("command_singly")
            found |= {"singly_per_s": singly["per_s"], "singly_client_cpu_us": singly["cpu_us"]}
            found["not_handed_over"] = size.commands - answer["handed_over"]
        return found

    async def _matcher(self, place: Path, say: Say) -> dict[str, float]:
        size = self._size
        settings = {"devices": size.devices}
        async with Child("benchmarks.command.matching", settings, place / "matching.log") as child:
            say(f"matcher: registering {size.devices} devices")
            await child.ask("register")
            answer = await child.ask("match", count=size.matched, seed=1)
            say(f"matcher: {answer['per_s']:.0f} commands/s")
            return {"matcher_per_s": answer["per_s"]}

    async def _send(self, sender: Child, count: int, rooms: int, seed: int) -> dict[str, float]:
        await sender.ask("make", count=count, rooms=rooms, seed=seed)
        return await sender.ask("command")
