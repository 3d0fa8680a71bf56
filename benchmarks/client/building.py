"""python -m benchmarks.client.building SETTINGS: the same readings as the same messages, as lean as they can be built
by somebody who trusts them: a column at a time, without a check, and serialised. Nothing is sent."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import orjson

from benchmarks import trucks
from benchmarks.child import Answer, answer_questions
from utuple.client.sending.rows import ids_of
from utuple.model.columns import MICROSECONDS
from utuple.runtime.clock import now_us
from utuple.runtime.program import run_program
from utuple.wire import utuple_pb2 as pb


def message_of(events: Sequence[Mapping[str, Any]], time_us: int, random: int) -> bytes:
    positions = list(map(itemgetter("position"), events))
    data = orjson.dumps(
        list(map(itemgetter("data"), events))
    )  # each by itself costs seven times as much
    columns = pb.Columns(
        families=[pb.Family(subject=trucks.SUBJECT, type=trucks.TYPE, epoch=1)],
        ids=ids_of(time_us, random, len(events)),
        times_us=(array("q", [time_us]) * len(events)).tobytes(),
        lats=array("d", map(itemgetter(0), positions)).tobytes(),
        lons=array("d", map(itemgetter(1), positions)).tobytes(),
        lifetimes_us=array("q", [trucks.LIFETIME_S * MICROSECONDS]).tobytes(),
        addresses=list(map(itemgetter("address"), events)),
        payloads=[b"{%b}" % inner for inner in data[2:-2].split(b"},{")],
    )
    return pb.RegisterRequest(events=columns).SerializeToString()


async def build(question: Mapping[str, Any]) -> Answer:
    events = trucks.events(question["count"], question["seed"])
    rows = question["message_rows"]
    gc.collect()
    gc.freeze()
    began_s, size_bytes = time.process_time(), 0
    for at in range(0, len(events), rows):
        size_bytes += len(message_of(events[at : at + rows], now_us(), at))
    return {"cpu_s": time.process_time() - began_s, "size_bytes": size_bytes}


async def main(stop: asyncio.Event) -> None:
    await answer_questions({"build": build}, stop)


if __name__ == "__main__":
    sys.exit(run_program("building", main))
