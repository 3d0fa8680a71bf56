"""`utuple bench command`: simple commands to a million devices.

matcher       the sCA server's matcher alone, on one core; `ratio_dict` is its rate over that of look-ups in one dictionary of all
              devices, in the same process
known         `command_many` of one SDK process to all devices, which are known to the sCA server and away
handed over   the same to devices that another SDK process serves: each command is delivered and confirmed
              before its receipt; the others are known all the while. `ratio_mosquitto` is its rate over that of messages
              of QoS 1 which one program publishes and another takes, on one topic
scaling_2     two sCA servers over one, each of which works `SERVICE_US` longer on a command, so that it and not this
              machine's cores is what bounds them; devices are known and away
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground
from benchmarks.rivals.catalogue import MOSQUITTO
from benchmarks.rivals.running import RunningRival


@dataclass(frozen=True, slots=True)
class Size:
    devices: int = 1_000_000
    served: int = 1_000
    """Of them, by one program."""
    commands: int = 200_000
    matched: int = 1_000_000
    warm_up: int = 20_000
    shared: int = 5_000
    """Devices, and commands, of the comparison of two sCA servers with one."""
    rival_messages: int = 20_000


QUICK = Size(20_000, 100, 5_000, 50_000, 1_000, 3_000, 500)
RATIO_DICT, RATIO_MOSQUITTO = 0.4, 2.0
"""Half of what was seen when they were set: they are there to notice what breaks."""
SERVICE_US = 1_000.0
SCA = "sca-1"


class Command:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("ratio_dict", at_least=RATIO_DICT),
            Target("ratio_mosquitto", at_least=RATIO_MOSQUITTO, rival=MOSQUITTO.name),
            Target("not_handed_over", at_most=0, always=True),
            Target("scaling_2", at_least=1.8),
        )
        self.notes = {
            "ours": "nothing is durable: simple commands have lifetime 0; a receipt says what was confirmed",
            "dict": "one look-up a command, by subject, type and address, and nothing else",
            MOSQUITTO.name: MOSQUITTO.note,
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
        found |= await self._mosquitto(place, found["handed_over_per_s"], say)
        one, two = [await self._shared(place / f"shared-{n}", n, say) for n in (1, 2)]
        return {**found, "one_sca_per_s": one, "two_scas_per_s": two, "scaling_2": two / one}

    async def _shared(self, place: Path, scas: int, say: Say) -> float:
        """Commands a second by so many sCA servers, each slowed down."""
        size, plan = self._size, Plan([0.0], scas=scas, sca_service_us=SERVICE_US)
        await asyncio.to_thread(place.mkdir)
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, plan, say))
            places = [ground.address_of(f"sca-{n + 1}") for n in range(scas)]
            settings = {"managers": ground.managers, "sca": places[0]}
            sender = await stack.enter_async_context(
                Child("benchmarks.command.programs", settings, place / "sender.log")
            )
            for at in places:  # each keeps those of its share
                await sender.ask("register", first=0, count=size.shared, sca=at)
            await self._send(sender, size.shared // 10, size.shared, seed=0)
            answer = await self._send(sender, size.shared, size.shared, seed=1)
            if answer["matched"] != size.shared:
                raise BenchFailed(f"{size.shared - answer['matched']} commands met no device")
            say(
                f"{scas} sCA servers, {SERVICE_US:g} µs a command: {answer['per_s']:.0f} commands/s"
            )
            return answer["per_s"]

    async def _matcher(self, place: Path, say: Say) -> dict[str, float]:
        size = self._size
        settings = {"devices": size.devices}
        async with Child("benchmarks.command.matching", settings, place / "matching.log") as child:
            say(f"matcher: registering {size.devices} devices")
            await child.ask("register")
            answer = await child.ask("match", count=size.matched, seed=1)
            say(f"matcher: {answer['per_s']:.0f} commands/s")
            return {
                "ratio_dict": answer["per_s"] / answer["dict_per_s"],
                "matcher_per_s": answer["per_s"],
                "dict_per_s": answer["dict_per_s"],
            }

    async def _mosquitto(self, place: Path, ours_per_s: float, say: Say) -> dict[str, float]:
        """If it is here."""
        if not MOSQUITTO.is_installed:
            return {}
        async with RunningRival(MOSQUITTO, place, say, subscribed=True) as running:
            per_s = await running.delivered_per_s(self._size.rival_messages)
        say(f"{MOSQUITTO.name}: {per_s:.0f} messages/s")
        return {"ratio_mosquitto": ours_per_s / per_s, "mosquitto_per_s": per_s}

    async def _send(self, sender: Child, count: int, rooms: int, seed: int) -> dict[str, float]:
        await sender.ask("make", count=count, rooms=rooms, seed=seed)
        return await sender.ask("command")
