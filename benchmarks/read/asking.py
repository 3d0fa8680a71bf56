"""python -m benchmarks.read.asking SETTINGS: one question at a time, by the SDK's `read` or by hand-written SQL on the
same tables. Both end with every row in the program's hands."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import psycopg

import utuple
from benchmarks.child import Answer, answer_questions, settings
from benchmarks.read.recording import FAMILY
from utuple.client.space import Space
from utuple.model.utuple import datetime_of
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.program import run_program
from utuple.store.postgres.partitions import TIME_BUCKET, TIME_BUCKET_BITS

_ROWS = """
    SELECT e.id, e.data, e.address, e.time_us, e.lat, e.lon FROM utuple.events e
    WHERE e.family = (SELECT id FROM utuple.families WHERE subject = %(subject)s AND type = %(type)s)
    AND e.time_us >= %(since_us)s AND e.time_us < %(until_us)s AND e.expires_us > %(now_us)s
"""
IN_BOX = f"{_ROWS} AND lat BETWEEN %(south)s AND %(north)s AND lon BETWEEN %(west)s AND %(east)s"
OF_ADDRESS = f"""{_ROWS} AND address = %(address)s
    AND {TIME_BUCKET} BETWEEN %(first_bucket)s AND %(last_bucket)s
"""
"""In the words of the index on addresses, as the best hand would write it."""


class Asking:
    def __init__(self, space: Space, database: str) -> None:
        self._space = space
        self._connection = psycopg.connect(database, autocommit=True, prepare_threshold=0)

    async def ours(self, question: Mapping[str, Any]) -> Answer:
        area = utuple.Box(*question["box"]) if question["box"] else None
        asked: dict[str, Any] = {
            "since": datetime_of(question["since_us"]),
            "until": datetime_of(question["until_us"]),
            "address": question["address"],
            "area": area,
        }
        began_s = monotonic_s()
        found = [event async for event in self._space.read(**FAMILY._asdict(), **asked)]
        took_s = monotonic_s() - began_s
        return {"took_s": took_s, "ids": sorted(str(event.id) for event in found)}

    async def by_hand(self, question: Mapping[str, Any]) -> Answer:
        south, west, north, east = question["box"] or (0.0,) * 4
        asked = {
            **FAMILY._asdict(),
            **{name: question[name] for name in ("since_us", "until_us", "address")},
            "south": south,
            "west": west,
            "north": north,
            "east": east,
            "now_us": now_us(),
            "first_bucket": question["since_us"] >> TIME_BUCKET_BITS,
            "last_bucket": (question["until_us"] - 1) >> TIME_BUCKET_BITS,
        }
        statement = IN_BOX if question["box"] else OF_ADDRESS
        began_s = monotonic_s()
        with self._connection.cursor(binary=True) as cursor:
            found = cursor.execute(statement, asked).fetchall()
        took_s = monotonic_s() - began_s
        return {"took_s": took_s, "ids": sorted(str(row[0]) for row in found)}


async def main(stop: asyncio.Event) -> None:
    given = settings()
    async with utuple.connect(*given["managers"]) as space:
        asking = Asking(space, given["database"])
        await answer_questions({"ours": asking.ours, "by_hand": asking.by_hand}, stop)


if __name__ == "__main__":
    sys.exit(run_program("asking", main))
