"""`utuple bench read`: stored searches among ten million EAs of one key.

    area      an area and an hour that match about a hundred
    address   one address over a week

Each question is put to the SDK's `read` and to hand-written SQL through psycopg on the same tables; both must find the
same uTuples. Whoever asks first finds pages nobody has looked at for a while, and has PostgreSQL fetch them for both, so
they take turns at it, and first is compared with first (`ratio_sql`), again with again (`again_ratio_sql`). The store is
filled once for all runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.benchmark import OURS_ARE_DURABLE, BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground

SERVER = "server-1"
KINDS = "area", "address"

Seen = dict[tuple[str, ...], list[float]]
"""Seconds by kind of question, who asked and which time; and how many rows by kind."""


@dataclass(frozen=True, slots=True)
class Size:
    events: int = 10_000_000
    questions: int = 400
    """Of each kind, in a run; half of them are ours to ask first."""
    warm_up: int = 5


QUICK = Size(100_000, 6, 2)


class Read:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = tuple(
            target
            for kind in KINDS
            for target in (
                Target(f"{kind}_p50_ms", at_most=50),
                Target(f"{kind}_ratio_sql", at_most=1.3),
                Target(f"{kind}_again_ratio_sql", at_most=1.3),
            )
        )
        self.notes = {"ours": OURS_ARE_DURABLE, "sql": "the same rows in the same tables"}
        self._filling: Child | None = None
        self._asking: Child | None = None
        self._rows = 0
        self._seed = 0

    @asynccontextmanager
    async def prepared(self, place: Path, say: Say) -> AsyncIterator[None]:
        """Filled, and serving."""
        async with AsyncExitStack() as stack:

            async def fill(databases: Mapping[str, str]) -> None:
                settings = {"database": databases[SERVER], "name": SERVER}
                child = Child("benchmarks.read.filling", settings, place / "filling.log")
                self._filling = await stack.enter_async_context(child)
                say(f"filling {self._size.events} EAs")
                filled = await self._filling.ask("fill", count=self._size.events)
                self._rows = filled["rows"]
                say(f"{self._rows} EAs at {filled['per_s']:.0f} a second")

            plan = Plan([0.0], prepare=fill)
            ground = await stack.enter_async_context(open_ground(place, plan, say))
            settings = {"managers": ground.managers, "database": ground.database_of(SERVER)}
            asking = Child("benchmarks.read.asking", settings, place / "asking.log")
            self._asking = await stack.enter_async_context(asking)
            await self._ask(self._size.warm_up)
            yield

    async def run(self, place: Path, say: Say) -> Figures:
        found: dict[str, float] = {"events": self._rows}
        seen = await self._ask(self._size.questions)
        for kind in KINDS:
            found[f"{kind}_p50_ms"] = 1e3 * median(
                seen[kind, "ours", ""] + seen[kind, "ours", "again_"]
            )
            for time in ("", "again_"):
                ours_ms, sql_ms = (1e3 * median(seen[kind, by, time]) for by in ("ours", "by_hand"))
                found[f"{kind}_{time}ours_ms"] = ours_ms
                found[f"{kind}_{time}sql_ms"] = sql_ms
                found[f"{kind}_{time}ratio_sql"] = ours_ms / sql_ms
            found[f"{kind}_rows"] = median(seen[kind,])
        return found

    async def _ask(self, count: int) -> Seen:
        assert self._filling is not None and self._asking is not None
        self._seed += 1
        asked = await self._filling.ask("questions", count=count, seed=self._seed)
        seen: Seen = {}
        for number, question in enumerate(asked["questions"]):
            kind = "area" if question["box"] else "address"
            turns = ("ours", "by_hand") if number // 2 % 2 else ("by_hand", "ours")
            answers: dict[str, Any] = {by: await self._asking.ask(by, **question) for by in turns}
            if answers["ours"]["ids"] != answers["by_hand"]["ids"]:
                raise BenchFailed(f"read and SQL do not find the same: {question}")
            for by, time in zip(turns, ("", "again_"), strict=True):
                seen.setdefault((kind, by, time), []).append(answers[by]["took_s"])
            seen.setdefault((kind,), []).append(len(answers["ours"]["ids"]))
        return seen
