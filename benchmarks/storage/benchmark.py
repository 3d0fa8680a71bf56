"""`utuple bench storage`: what EAs of application A take in the store, tables with all their indexes and maps, after
a million of them came through `emit_many`. The paper's figures imply about 1,480 bytes each."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.benchmark import BenchFailed, Options, Say
from benchmarks.child import Child
from benchmarks.figures import Figures, Target
from benchmarks.ground import Plan, open_ground

_TABLES = """
    SELECT sum(pg_total_relation_size(inhrelid))::bigint, sum(pg_table_size(inhrelid))::bigint
    FROM pg_inherits WHERE inhparent = 'utuple.events'::regclass
"""
_INDEXES = """
    SELECT substring(relname from '[a-z]+$'), sum(pg_relation_size(indexrelid))::bigint
    FROM pg_inherits JOIN pg_index ON indrelid = inhrelid JOIN pg_class ON pg_class.oid = indexrelid
    WHERE inhparent = 'utuple.events'::regclass GROUP BY 1 ORDER BY 1
"""
_ROWS = "SELECT count(*) FROM utuple.events"


@dataclass(frozen=True, slots=True)
class Size:
    turns: int = 10
    events: int = 100_000
    """A turn."""


QUICK = Size(1, 20_000)


class Storage:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (Target("bytes_per_ea", at_most=180),)
        self.notes = {"ours": "tables, indexes and maps of EAs; without the WAL, which is reused"}

    async def run(self, place: Path, say: Say) -> Figures:
        size = self._size
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(open_ground(place, Plan([0.0]), say))
            given = {"managers": ground.managers}
            gateway = Child("benchmarks.gateway", given, place / "gateway.log")
            await stack.enter_async_context(gateway)
            for turn in range(size.turns):
                await gateway.ask("make", count=size.events, seed=turn)
                await gateway.ask("emit")
            say(f"{size.turns * size.events} EAs are stored")
            database = ground.database_of(ground.servers[0])
            sizes = await asyncio.to_thread(_sizes, database, size.turns * size.events)
        return sizes


def _sizes(database: str, wanted: int) -> dict[str, float]:
    with psycopg.connect(database) as connection:
        found = connection.execute(_ROWS).fetchone()
        whole = connection.execute(_TABLES).fetchone()
        indexes = connection.execute(_INDEXES).fetchall()
    assert found is not None and whole is not None
    if found[0] != wanted:
        raise BenchFailed(f"{found[0]} of {wanted} EAs are in the store")
    return {
        "bytes_per_ea": whole[0] / wanted,
        "table_bytes_per_ea": whole[1] / wanted,
        **{f"index_{name}_bytes_per_ea": taken / wanted for name, taken in indexes},
    }
