"""python -m benchmarks.command.matching SETTINGS: the sCA server's matcher alone, one core, no network; and beside it what no
matcher in Python can do without, one look-up in a dictionary of all devices by subject, type and address."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from array import array
from collections.abc import Mapping
from typing import Any

from benchmarks.child import Answer, answer_questions, settings
from benchmarks.command import fleet
from sca_server.commands import Commands
from sca_server.config import Config
from sca_server.core import Core
from sca_server.matcher import match
from utuple.client.sending.rows import simple_commands
from utuple.errors import UTupleError
from utuple.runtime.clock import now_us
from utuple.runtime.program import run_program

CALL_ROWS = 2_048
"""As large as the SDK makes them."""


class Matching:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._devices: int = given["devices"]
        self._core = Core(Config("sca", "127.0.0.1:0", ("127.0.0.1:1",)).limits)
        self._bare: dict[tuple[str, str, str], int] = {}

    async def register(self, _: Mapping[str, Any]) -> Answer:
        columns = fleet.devices(range(self._devices), now_us(), 0)
        began_s = time.perf_counter()
        wrong = self._core.register(columns, range(len(columns)), now_us())
        took_s = time.perf_counter() - began_s
        if wrong:
            raise UTupleError(f"devices are refused: {wrong[0]}")
        self._bare = {(*fleet.FAMILY, address): n for n, address in enumerate(columns.addresses)}
        gc.collect()
        gc.freeze()  # as the server does not search a million devices for garbage either
        return {"per_s": len(columns) / took_s}

    async def match(self, question: Mapping[str, Any]) -> Answer:
        calls = self._calls(question["count"], question["seed"])
        began_s = time.perf_counter()
        met = sum(len(match(self._core.index, call, now_us())[0]) for call in calls)
        took_s = time.perf_counter() - began_s
        if met != question["count"]:
            raise UTupleError(f"{met} of {question['count']} commands met their device")
        return {"per_s": met / took_s, "dict_per_s": met / self._bare_s(calls)}

    def _bare_s(self, calls: list[Commands]) -> float:
        """Seconds until each command has its device, by the dictionary alone."""
        subject, type_ = fleet.FAMILY
        began_s = time.perf_counter()
        for call in calls:
            device = self._bare.__getitem__
            found = [device((subject, type_, address)) for address in call.addresses]
            assert len(found) == len(call.addresses)
        return time.perf_counter() - began_s

    def _calls(self, count: int, seed: int) -> list[Commands]:
        """As the server has them from the wire."""
        calls = []
        for at in range(0, count, CALL_ROWS):
            asked = fleet.orders(min(CALL_ROWS, count - at), self._devices, seed + at)
            made = simple_commands(asked, 0, now_us(), at)
            calls.append(
                Commands(
                    made.families, array("I", made.family), made.ids, made.addresses, made.payloads
                )
            )
        return calls


async def main(stop: asyncio.Event) -> None:
    matching = Matching(settings())
    await answer_questions({"register": matching.register, "match": matching.match}, stop)


if __name__ == "__main__":
    sys.exit(run_program("matching", main))
