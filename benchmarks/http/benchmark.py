"""`utuple bench http`: events through one HTTP door beside the SDK, in turns: NDJSON beside `emit_many`, one event a POST over 64
connections beside 64 coroutines that await `emit`, server-sent events beside a watch; and ingest with 50 consoles open."""

from __future__ import annotations

import math
import statistics
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import OURS_ARE_DURABLE, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground
from benchmarks.machine import process_cpu_s
from benchmarks.mqtt.benchmark import started
from utuple.local.layout import HOST
from utuple.runtime.clock import monotonic_s


@dataclass(frozen=True, slots=True)
class Size:
    rows: int = 200_000
    turns: int = 3
    pairs: int = 10
    """Even: in half of them the one comes first, in half the other."""
    seconds: float = 5.0
    connections: int = 64
    rate_per_s: int = 500
    delays: int = 3_000
    consoles: int = 50


QUICK = Size(2_000, 1, 2, 0.5, 8, 100, 50, 5)
_SINGLE_PER_S, _SINGLE_RATIO = 2_500.0, 0.3


def both_orders(ratios: list[float]) -> float:
    """Of two equal runs the second of a pair is some 10 % slower, as the family has grown: a median of all pairs would be that of
    the order there are more of. So the medians of both orders count alike."""
    return math.sqrt(statistics.median(ratios[0::2]) * statistics.median(ratios[1::2]))


class Http:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("ratio_ingest", at_least=0.4),
            Target("single_of_bar", at_least=1.0),
            Target("ratio_latency", at_most=2.0),
            Target("ratio_consoles", at_least=0.97),
        )
        self.notes = {"ours": OURS_ARE_DURABLE}

    async def run(self, place: Path, say: Say) -> Figures:
        size, found = self._size, dict[str, list[float]]()
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0]), say))

            def door(port: int) -> list[str]:
                at = ",".join(ground.managers)
                module = ("-P", "-m", "utuple.doors.http")
                return [sys.executable, *module, "--at", at, "--listen", f"{HOST}:{port}"]

            side = await stack.enter_async_context(started("door", door, place))
            given = {"port": side.port, "managers": list(ground.managers)}
            log = place / "load.log"
            load = await stack.enter_async_context(Child("benchmarks.http.load", given, log))
            consoles = await stack.enter_async_context(Child("benchmarks.http.load", given, log))
            for turn in range(size.turns):
                for verb in ("emit_many", "ndjson"):
                    answer = await load.ask(verb, count=size.rows, subject=f"plug-{turn}")
                    found.setdefault(verb, []).append(answer["per_s"])
                for verb in ("emit_single", "post_single"):
                    answer = await load.ask(
                        verb, connections=size.connections, seconds=size.seconds
                    )
                    found.setdefault(verb, []).append(answer["per_s"])
            pairs, door_ms = await self._with_consoles(load, consoles, side.pid)
            delays = await load.ask("delays", count=size.delays, rate_per_s=size.rate_per_s)
        middle = {name: statistics.median(values) for name, values in found.items()}
        say(", ".join(f"{name} {value:,.0f}/s" for name, value in middle.items()))
        return {
            "emit_many_per_s": middle["emit_many"],
            "ndjson_per_s": middle["ndjson"],
            "emit_per_s": middle["emit_single"],
            "post_per_s": middle["post_single"],
            "sdk_p50_ms": delays["sdk_p50_s"] * 1e3,
            "http_p50_ms": delays["http_p50_s"] * 1e3,
            "ratio_ingest": middle["ndjson"] / middle["emit_many"],
            "ratio_single": middle["post_single"] / middle["emit_single"],
            "single_of_bar": max(
                middle["post_single"] / _SINGLE_PER_S,
                middle["post_single"] / middle["emit_single"] / _SINGLE_RATIO,
            ),
            "ratio_latency": delays["http_p50_s"] / delays["sdk_p50_s"],
            "ratio_consoles": both_orders(pairs),
            "consoles_door_ms_per_s": door_ms,
        }

    async def _with_consoles(
        self, load: Child, consoles: Child, door: int
    ) -> tuple[list[float], float]:
        """Ingest with consoles open over ingest with none, pair by pair, the open ones second, first, second, … And what the door takes of a core for the consoles, which the rest of the machine cannot change."""
        size, ratios, used_s, open_s = self._size, list[float](), 0.0, 0.0
        for pair in range(size.pairs):
            per_s: dict[bool, float] = {}
            for is_open in (True, False) if pair % 2 else (False, True):
                await consoles.ask("pages", count=size.consoles if is_open else 0)
                cpu_s, began_s = process_cpu_s(door), monotonic_s()
                answer = await load.ask("emit_many", count=size.rows, subject=f"page-{pair}")
                per_s[is_open] = answer["per_s"]
                if is_open:
                    used_s += process_cpu_s(door) - cpu_s
                    open_s += monotonic_s() - began_s
            ratios.append(per_s[True] / per_s[False])
        await consoles.ask("pages", count=0)
        return ratios, used_s / open_s * 1e3
