"""What the servers say of themselves, looked at often: the lines they hold, the moves they recorded as homes,
what they store. Asked past the proxies, so that a partition hides nothing from us."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks.chaos import record
from benchmarks.chaos.ground import Ground
from benchmarks.chaos.moves import Moves
from benchmarks.chaos.orders import Situation
from benchmarks.chaos.record import Recorder
from utuple.admin import transport
from utuple.cluster.line import Line
from utuple.cluster.table import Table
from utuple.local.readiness import SERVING
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, record_from_wire

LOOK_S = 1.0


class Sight:
    def __init__(self, ground: Ground, own: Recorder) -> None:
        self.moves = Moves()
        self.epochs = 0
        """The highest that any line came to."""
        self._ground = ground
        self._own = own
        self._last: dict[str, pb.ServerStatus] = {}
        self._written: dict[str, list[pb.Line]] = {}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        names = self._ground.server_names
        asked = (transport.server_status(self._ground.address_of(name)) for name in names)
        for name, status in zip(names, await asyncio.gather(*asked), strict=True):
            if status is not None and status.state == SERVING:
                self._take(name, status)

    def _take(self, name: str, status: pb.ServerStatus) -> None:
        self.moves.note(name, map(record_from_wire, status.moves))
        lines = durable(self._last.get(name), status)
        if lines:
            self.epochs = max([self.epochs, *(line.epoch for line in lines)])
            for line in lines:
                if line not in self._written.get(name, ()):
                    said: dict[str, Any] = {"server": name, "line": line.SerializeToString().hex()}
                    self._own.write(record.LINE, said)
            self._written[name] = lines
        self._last[name] = status

    # --- the table -----------------------------------------------------------------------------------

    @property
    def lines(self) -> list[Line]:
        """The newest of what every server said last."""
        said = (line for status in self._last.values() for line in status.lines)
        return list(Table(map(line_from_wire, said)))

    @property
    def suspended(self) -> list[tuple[Line, str]]:
        return [(line, one.name) for line in self.lines for one in line.members if one.suspended]

    def situation(self, lines_most: int) -> Situation:
        sections = [(name, one) for name, status in self._last.items() for one in status.sections]
        return Situation(
            tuple(self.lines),
            tuple(sorted(self._last)),
            lines_most,
            self.moves.busy,
            tuple(one.some_key for _, one in sections if one.HasField("some_key")),
            frozenset((name, one.start) for name, one in sections if one.is_empty),
            self.moves.left,
        )


def durable(before: pb.ServerStatus | None, now: pb.ServerStatus) -> list[pb.Line]:
    """The lines that are surely committed. A server shows a line as soon as its writer has it, and loses it
    again if the commit fails; but what it showed before something was registered, and still shows, it has."""
    if before is None or before.since_us != now.since_us or before.registered >= now.registered:
        return []
    shown = list(before.lines)
    return [line for line in now.lines if line in shown]
