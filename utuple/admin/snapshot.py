"""The cluster as an operator sees it: the table, and what every program says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from utuple.admin import transport
from utuple.admin.certificates import Certificate, advice_on, certificates_of
from utuple.admin.founding import by_number
from utuple.admin.moves import ShownMove, move_of
from utuple.admin.programs import (
    WELL,
    Manager,
    Monitor,
    Program,
    Sca,
    Server,
    lines_of,
    manager_of,
    monitor_of,
    sca_of,
    server_of,
)
from utuple.cluster.line import NO_SCA, Line
from utuple.cluster.shares import AWAY, SCA
from utuple.cluster.table import Table
from utuple.runtime.clock import now_us
from utuple.wire import utuple_pb2 as pb

NO_MONITOR = "no load monitor: load stays where it is"


@dataclass(frozen=True, slots=True)
class Snapshot:
    whole: bool
    lines: Sequence[Line] = ()
    servers: Sequence[Server] = ()
    scas: Sequence[Sca] = ()
    managers: Sequence[Manager] = ()
    monitors: Sequence[Monitor] = ()
    moves: Sequence[ShownMove] = ()
    """Of all homes, the oldest first."""
    certificates: Sequence[Certificate] = ()
    """Of a secured cluster."""

    @property
    def is_well(self) -> bool:
        """Every program answers and serves, every key has a line, and devices have an sCA server. A load monitor may be
        missing: everything else goes on."""
        programs: list[Program] = [*self.servers, *self.scas, *self.managers, *self.monitors]
        serve = all(program.state in WELL for program in programs)
        return self.whole and bool(self.scas) and serve

    @property
    def missing(self) -> list[str]:
        """Kinds of programs of which the managers know none, and what that means."""
        return [
            said for said, have in ((NO_SCA, self.scas), (NO_MONITOR, self.monitors)) if not have
        ]

    @property
    def under_way(self) -> list[ShownMove]:
        return [move for move in self.moves if move.is_under_way]

    @property
    def advice(self) -> list[str]:
        """Of every monitor, each sentence once; and about certificates that end."""
        said = (sentence for monitor in self.monitors for sentence in monitor.advice)
        return [*dict.fromkeys(said), *advice_on(self.certificates, now_us())]

    def server(self, name: str) -> Server | None:
        return next((server for server in self.servers if server.name == name), None)

    def lines_of(self, name: str) -> list[Line]:
        return [line for line in self.lines if line.member(name) is not None]


async def table_of(addresses: Sequence[str]) -> Snapshot:
    """The table alone: no server is asked."""
    answer = await transport.first_table_of(addresses)
    return Snapshot(answer.whole, lines_of(answer.lines))


async def snapshot_of(addresses: Sequence[str], *, brief: bool = False) -> Snapshot:
    """Everybody is asked. Lines are the managers' with the servers' own over them: a home knows its new
    line first. `brief`: without the readers, whose lag is counted in the stores."""
    answer = await transport.first_table_of(addresses)
    known = lines_of(answer.lines)
    places = {info.name: info.address for info in answer.servers if info.role in ("", "server")}
    for line in known:
        for member in line.members:
            places.setdefault(member.name, "")
    names = sorted(places, key=by_number)
    statuses = await asyncio.gather(*(_status(places[name], brief=brief) for name in names))
    said = dict(zip(names, statuses, strict=True))
    own = (line for status in statuses if status is not None for line in lines_of(status.lines))
    lines = list(Table([*known, *own]))
    scas = [info for info in answer.servers if info.role in (SCA, AWAY)]
    scas.sort(key=lambda info: by_number(info.name))
    monitors = (info for info in answer.servers if info.role == "monitor")
    return Snapshot(
        answer.whole,
        lines,
        [server_of(name, places[name], said[name], lines) for name in names],
        await asyncio.gather(*map(_sca, scas)),
        sorted(map(manager_of, answer.managers), key=lambda manager: by_number(manager.name)),
        await asyncio.gather(*map(_monitor, monitors)),
        _moves(said),
        await certificates_of(_all_places(answer)),
    )


def _all_places(answer: pb.TableAnswer) -> dict[str, str]:
    infos = [*(status.manager for status in answer.managers), *answer.servers]
    return {info.name: info.address for info in infos if info.role != transport.GONE}


async def _status(address: str, *, brief: bool) -> pb.ServerStatus | None:
    return await transport.server_status(address, brief=brief) if address else None


async def _sca(info: pb.ServerInfo) -> Sca:
    return sca_of(info, await transport.sca_status(info.address))


async def _monitor(info: pb.ServerInfo) -> Monitor:
    return monitor_of(info, await transport.monitor_status(info.address))


def _moves(said: Mapping[str, pb.ServerStatus | None]) -> list[ShownMove]:
    at_us = now_us()
    moves = (
        move_of(record, name, at_us)
        for name, status in said.items()
        if status is not None
        for record in status.moves
    )
    return sorted(moves, key=lambda move: (move.began_us, move.id))


def line_said(line: Line) -> str:
    """As `utuple table` shows it."""
    return f"{section_said(line)}  epoch {line.epoch}  {members_said(line)}"


def members_said(line: Line) -> str:
    """With the axes of a partitioned line."""
    members = ", ".join(map(str, line.members))
    return f"{members}; by {line.layout}" if line.layout.axes else members


def section_said(line: Line) -> str:
    """The first and the last key."""
    return f"{line.section.start:016x} – {line.section.end - 1:016x}"
