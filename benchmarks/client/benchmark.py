"""`utuple bench client`: processor time of one SDK process for each 1,000 EAs of `emit_many`, with all its threads,
until the last is durable; beside it what building and serialising the same messages costs alone, without a check and
without a network. They take turns."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import OURS_ARE_DURABLE, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground
from utuple.client.config import Config

THOUSAND = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    turns: int = 6
    events: int = 100_000


QUICK = Size(1, 10_000)


class ClientCost:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (Target("ratio_client", at_most=1.5),)
        self.notes = {
            "ours": OURS_ARE_DURABLE,
            "building": "nothing is sent: messages as large as the SDK's, built without a check",
        }

    async def run(self, place: Path, say: Say) -> Figures:
        size, log = self._size, place / "clients.log"
        ours_s, building_s, size_bytes = 0.0, 0.0, 0
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0]), say))
            gateway, building = [
                await stack.enter_async_context(Child(f"benchmarks.{module}", given, log))
                for module, given in (
                    ("gateway", {"managers": ground.managers}),
                    ("client.building", {}),
                )
            ]
            for turn in range(size.turns + 1):
                await gateway.ask("make", count=size.events, seed=turn)
                ours = await gateway.ask("emit")
                alone = await building.ask(
                    "build", count=size.events, seed=turn, message_rows=Config().batch_rows
                )
                if turn:  # the first is to warm up
                    ours_s += ours["cpu_s"]
                    building_s += alone["cpu_s"]
                    size_bytes += alone["size_bytes"]
        thousands = size.turns * size.events / THOUSAND
        say(f"ours: {ours_s / thousands * 1e3:.2f} ms for 1,000 EAs")
        return {
            "ratio_client": ours_s / building_s,
            "ours_ms_per_1000": ours_s / thousands * 1e3,
            "building_ms_per_1000": building_s / thousands * 1e3,
            "message_bytes_per_ea": size_bytes / (size.turns * size.events),
        }
