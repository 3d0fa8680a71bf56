"""python -m benchmarks.filling SETTINGS: fills the store of a server that has not started yet with EAs of application A,
through the same store the server commits to: by COPY alone, in a fraction of the time that emitting takes."""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import trucks
from benchmarks.benchmark import Say
from benchmarks.child import Answer, Child, answer_questions, settings
from utuple.client.sending.rows import ids_of
from utuple.local.running import Prepare
from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.utuple import Family
from utuple.model.value import encode_data
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.program import run_program
from utuple.store.contract import Batch, Transaction
from utuple.store.postgres.store import PostgresStore

COMMIT_ROWS = 50_000
_ID_BITS = 74


def filler(server: str, families: Sequence[Family], count: int, log: Path, say: Say) -> Prepare:
    """For a `Plan`: at least so many, of all these families together."""

    async def fill(databases: Mapping[str, str]) -> None:
        given = {
            "database": databases[server],
            "name": server,
            "families": [[*family] for family in families],
        }
        async with Child("benchmarks.filling", given, log) as child:
            say(f"filling {count:,} EAs")
            filled = await child.ask("fill", count=count)
            say(f"{filled['count']:,} EAs at {filled['per_s']:,.0f} a second")

    return fill


class Filling:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._store = PostgresStore(given["database"], create=True)
        self._name: str = given["name"]
        self._families = tuple(Family(*family) for family in given["families"])
        self._dice = Random(0)

    async def fill(self, question: Mapping[str, Any]) -> Answer:
        await self._store.open(self._name, now_us())
        began_s, seq = monotonic_s(), 0
        wanted: int = question["count"]
        columns = self._columns(min(COMMIT_ROWS, wanted))
        while seq < wanted:
            batch = self._batch(columns, seq)
            seq += len(batch.seqs)
            await self._store.commit(Transaction(seq, events=[batch]))
        await self._store.close()
        return {"count": seq, "per_s": seq / (monotonic_s() - began_s)}

    def _columns(self, rows: int) -> Columns:
        """Readings of all families in turn; the same trucks say the same again and again."""
        made = trucks.events(rows, seed=0)
        return Columns(
            families=self._families,
            family=array("I", [row % len(self._families) for row in range(rows)]),
            lats=array("d", [event["position"][0] for event in made]),
            lons=array("d", [event["position"][1] for event in made]),
            lifetimes_us=array("q", [trucks.LIFETIME_S * MICROSECONDS]) * rows,
            addresses=[event["address"] for event in made],
            payloads=[encode_data(event["data"]) for event in made],
        )

    def _batch(self, columns: Columns, after: int) -> Batch:
        at_us, rows = now_us(), len(columns.addresses)
        ids = ids_of(at_us, self._dice.getrandbits(_ID_BITS), rows)
        whole = replace(columns, ids=ids, times_us=array("q", [at_us]) * rows)
        expires_us = array("q", [at_us + trucks.LIFETIME_S * MICROSECONDS]) * rows
        return Batch(whole, array("Q", range(after + 1, after + rows + 1)), expires_us)


async def main(stop: asyncio.Event) -> None:
    await answer_questions({"fill": Filling(settings()).fill}, stop)


if __name__ == "__main__":
    sys.exit(run_program("filling", main))
