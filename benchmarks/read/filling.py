"""python -m benchmarks.read.filling SETTINGS: fills the store of a server that has not started yet, through the same
store the server commits to; and knows what can be asked of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmarks.child import Answer, answer_questions, settings
from benchmarks.read.recording import batches, questions, recording, starts_us
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.program import run_program
from utuple.store.contract import Transaction
from utuple.store.postgres.store import PostgresStore

COMMIT_ROWS = 50_000


class Filling:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._store = PostgresStore(given["database"], create=True)
        self._name: str = given["name"]
        self._tape = recording()
        self._starts: list[int] = []

    async def fill(self, question: Mapping[str, Any]) -> Answer:
        await self._store.open(self._name, now_us())
        began_s = monotonic_s()
        seq = 0
        self._starts = starts_us(self._tape, question["count"], now_us())
        for start_us in self._starts:
            for batch in batches(self._tape, start_us, seq + 1, COMMIT_ROWS):
                await self._store.commit(Transaction(batch.seqs[-1], events=[batch]))
            seq += len(self._tape)
        await self._store.close()
        return {"rows": seq, "per_s": seq / (monotonic_s() - began_s)}

    async def questions(self, question: Mapping[str, Any]) -> Answer:
        asked = questions(self._tape, self._starts, question["count"], question["seed"])
        return {"questions": [asdict(one) for one in asked]}


async def main(stop: asyncio.Event) -> None:
    filling = Filling(settings())
    await answer_questions({"fill": filling.fill, "questions": filling.questions}, stop)


if __name__ == "__main__":
    sys.exit(run_program("filling", main))
