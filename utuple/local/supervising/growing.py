"""A local cluster grows and shrinks while it runs: servers are added when asked for, and those that were
drained are stopped and forgotten once they are in no line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any, Protocol

from utuple.admin.leaving import rest_of
from utuple.admin.snapshot import Snapshot, snapshot_of
from utuple.errors import InvalidInput, UTupleError
from utuple.local.folder import DataFolder
from utuple.local.keeper import Say
from utuple.local.layout import Program
from utuple.local.supervising import requests
from utuple.runtime.postgresql.unavailable import PostgresUnavailable

LOOK_S = 0.2
"""Somebody at a terminal waits for an answer."""
LEAVING_LOOK_S = 1.0
OUT_S = 3.0
"""In no line, with no last word left for its heirs, for so long before it is stopped: clients with an old line
are told of the new one."""


class Hands(Protocol):
    """The supervisor's."""

    @property
    def managers(self) -> list[str]: ...

    @property
    def leaving(self) -> tuple[str, ...]: ...

    async def add_server(self, name: str, database: str) -> Program: ...

    def note_leaving(self, name: str, *, leaves: bool) -> None: ...

    async def remove_server(self, name: str) -> None: ...

    async def add_sca(self) -> Program: ...

    async def remove_sca(self, name: str) -> None: ...


class Growing:
    def __init__(self, folder: DataFolder, hands: Hands, say: Say) -> None:
        self._folder = folder
        self._hands = hands
        self._say = say
        self._out_since_s: dict[str, float] = {}

    async def run(self) -> None:
        """Until cancelled."""
        await asyncio.gather(self._answer_requests(), self._watch_leaving())

    async def _answer_requests(self) -> None:
        while True:
            for id_, request in requests.waiting(self._folder):
                requests.answer(self._folder, id_, await self._carry_out(request))
            await asyncio.sleep(LOOK_S)

    async def _carry_out(self, request: requests.Request) -> dict[str, Any]:
        try:
            match request.verb:
                case "add":
                    program = await self._hands.add_server(request.name, request.database)
                    return {"name": program.name, "address": program.address}
                case "drain" | "stay":
                    self._hands.note_leaving(request.name, leaves=request.verb == "drain")
                    return {"name": request.name}
                case "add-sca":
                    program = await self._hands.add_sca()
                    return {"name": program.name, "address": program.address}
                case "remove-sca":
                    await self._hands.remove_sca(request.name)
                    return {"name": request.name}
            rule = "must be add, drain, stay, add-sca or remove-sca"
            raise InvalidInput("request", request.verb, rule)
        except (UTupleError, PostgresUnavailable, OSError) as error:
            return {"error": str(error)}

    async def _watch_leaving(self) -> None:
        while True:
            if self._hands.leaving:
                await self._stop_who_is_out()
            await asyncio.sleep(LEAVING_LOOK_S)

    async def _stop_who_is_out(self) -> None:
        try:
            snapshot = await snapshot_of(self._hands.managers)
        except UTupleError:
            return  # no manager answers: look again
        for name in self.have_left(self._hands.leaving, snapshot, time.monotonic()):
            self._say(f"{name} is in no line any more: stopping it for good")
            self._folder.note_moves(move for move in snapshot.moves if move.home == name)
            await self._hands.remove_server(name)

    def have_left(self, leaving: Iterable[str], snapshot: Snapshot, now_s: float) -> list[str]:
        """Those that have been in no line for long enough."""
        left = []
        for name in leaving:
            server = snapshot.server(name)
            is_out = server is not None and server.leaving and rest_of(name, snapshot).is_out
            if server is None or not is_out or server.shipments:
                self._out_since_s.pop(name, None)
                continue
            since_s = self._out_since_s.setdefault(name, now_s)
            if now_s - since_s >= OUT_S:
                left.append(name)
        return left
