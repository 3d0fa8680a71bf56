"""The cluster as an operator sees it: the table, and what every program says of itself, as plain
mappings with the names that `--json` prints."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from utuple.admin import transport
from utuple.admin.founding import by_number
from utuple.admin.moves import UNDER_WAY, move_shown, order_shown
from utuple.cluster.line import NO_SCA, Line
from utuple.cluster.table import Table
from utuple.runtime.clock import now_us
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire

UNREACHABLE = "unreachable"
WELL = ("serving", "watching")
NO_MONITOR = "no load monitor: load stays where it is"

Shown = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    whole: bool
    lines: list[Line]
    servers: list[Shown]
    scas: list[Shown]
    managers: list[Shown]
    monitors: list[Shown] = field(default_factory=list)
    moves: list[Shown] = field(default_factory=list)
    """Of all homes, the oldest first."""

    @property
    def is_well(self) -> bool:
        """Every program answers and serves, every key has a line, and devices have an sCA server. A load monitor may be
        missing: everything else goes on."""
        programs = [*self.servers, *self.scas, *self.managers, *self.monitors]
        serve = all(shown["state"] in WELL for shown in programs)
        return self.whole and bool(self.scas) and serve

    @property
    def missing(self) -> list[str]:
        """Kinds of programs of which the managers know none, and what that means."""
        return [
            said for said, have in ((NO_SCA, self.scas), (NO_MONITOR, self.monitors)) if not have
        ]

    @property
    def under_way(self) -> list[Shown]:
        return [move for move in self.moves if move["step"] in UNDER_WAY]

    @property
    def advice(self) -> list[str]:
        """Of every monitor, each sentence once."""
        said = (sentence for monitor in self.monitors for sentence in monitor["advice"])
        return list(dict.fromkeys(said))

    def server(self, name: str) -> Shown | None:
        return next((server for server in self.servers if server["name"] == name), None)

    def lines_of(self, name: str) -> list[Line]:
        return [line for line in self.lines if line.member(name) is not None]

    def table(self) -> list[Shown]:
        return [line_shown(line) for line in self.lines]


async def table_of(addresses: Sequence[str]) -> Snapshot:
    """The table alone: no server is asked."""
    answer = await transport.first_table_of(addresses)
    return Snapshot(answer.whole, _lines(answer.lines), [], [], [])


async def snapshot_of(addresses: Sequence[str]) -> Snapshot:
    """Everybody is asked. Lines are the managers' with the servers' own over them: a home knows its new
    line first."""
    answer = await transport.first_table_of(addresses)
    known = _lines(answer.lines)
    places = {info.name: info.address for info in answer.servers if info.role in ("", "server")}
    for line in known:
        for member in line.members:
            places.setdefault(member.name, "")
    names = sorted(places, key=by_number)
    statuses = await asyncio.gather(*(_status(places[name]) for name in names))
    said = dict(zip(names, statuses, strict=True))
    own = (line for status in statuses if status is not None for line in _lines(status.lines))
    lines = list(Table([*known, *own]))
    scas = [info for info in answer.servers if info.role == "sca"]
    monitors = [info for info in answer.servers if info.role == "monitor"]
    return Snapshot(
        answer.whole,
        lines,
        [_server(name, places[name], said[name], lines) for name in names],
        list(await asyncio.gather(*(_sca(info) for info in scas))),
        sorted(map(_manager, answer.managers), key=lambda shown: by_number(shown["name"])),
        list(await asyncio.gather(*(_monitor(info) for info in monitors))),
        _moves(said),
    )


async def _status(address: str) -> pb.ServerStatus | None:
    return await transport.server_status(address) if address else None


def _moves(said: dict[str, pb.ServerStatus | None]) -> list[Shown]:
    at_us = now_us()
    moves = (
        move_shown(record, name, at_us)
        for name, status in said.items()
        if status is not None
        for record in status.moves
    )
    return sorted(moves, key=lambda move: (move["began_us"], move["id"]))


def _lines(messages: Sequence[pb.Line]) -> list[Line]:
    return sorted(map(line_from_wire, messages), key=lambda line: line.section)


def line_shown(line: Line) -> Shown:
    """Ends of sections in hexadecimal: the last end does not fit 64 bits, nor JSON's safe numbers."""
    return {
        "start": f"{line.section.start:016x}",
        "end": f"{line.section.end:016x}",
        "epoch": line.epoch,
        "home": line.home,
        "members": [
            {
                "name": member.name,
                "accumulatable": member.accumulatable,
                "suspended": member.suspended,
            }
            for member in line.members
        ],
    }


def line_said(line: Line) -> str:
    """As `utuple table` shows it."""
    flags = (f"{m.name} {'?' if m.suspended else int(m.accumulatable)}" for m in line.members)
    return (
        f"{line.section.start:016x} – {line.section.end - 1:016x}  epoch {line.epoch}  "
        f"{', '.join(flags)}"
    )


def flags_of(name: str, lines: Sequence[Line]) -> list[Shown]:
    """A server's flag in each of its lines."""
    return [
        {
            "start": f"{line.section.start:016x}",
            "end": f"{line.section.end:016x}",
            "epoch": line.epoch,
            "accumulatable": member.accumulatable,
            "suspended": member.suspended,
            "home": line.home,
        }
        for line in lines
        if (member := line.member(name)) is not None
    ]


def _server(
    name: str, address: str, status: pb.ServerStatus | None, lines: Sequence[Line]
) -> Shown:
    state = status.state if status is not None else UNREACHABLE
    status = status if status is not None else pb.ServerStatus()
    own = _lines(status.lines) or list(lines)
    load = status.load
    return {
        "name": name,
        "address": address,
        "pid": status.pid or None,
        "state": state,
        "leaving": status.leaving,
        "shipments": status.shipments,
        "from_servers": status.from_servers,
        "load": {
            "busy": load.busy,
            "queued": load.queued,
            "arrival_per_s": load.arrival_per_s,
            "service_per_s": load.service_per_s,
        },
        "flags": flags_of(name, own),
        "seq": status.seq,
        "events": status.events,
        "devices": status.devices,
        "event_templates": status.event_templates,
        "command_templates": status.command_templates,
        "size_bytes": status.size_bytes,
        "capacity_bytes": status.capacity_bytes,
        "registered": status.registered,
        "delivered": status.delivered,
        "since_us": status.since_us,
        "sections": list(map(_section, status.sections)),
        "readers": [
            {
                "reader": reader.reader,
                "formals": reader.formals,
                "connected": reader.connected,
                "lag": reader.lag,
                "lag_is_more": reader.lag_is_more,
                "families": [f"{family.subject}/{family.type}" for family in reader.families],
                "seen_us": reader.seen_us or None,
                "expires_us": reader.expires_us or None,
            }
            for reader in status.readers
        ],
    }


def _section(message: pb.SectionStatus) -> Shown:
    return {
        "start": f"{message.start:016x}",
        "end": f"{message.last + 1:016x}",
        "rows": message.rows,
        "templates": message.templates,
        "arrival_per_s": message.arrival_per_s,
    }


def _telemetry(rows: pb.Telemetry) -> Shown:
    return {
        "folder": rows.folder,
        "written": rows.written,
        "waiting": rows.waiting,
        "dropped": rows.dropped,
        "failures": rows.failures,
    }


async def _monitor(info: pb.ServerInfo) -> Shown:
    status = await transport.monitor_status(info.address)
    state = status.state if status is not None else UNREACHABLE
    status = status if status is not None else pb.MonitorStatus()
    return {
        "name": info.name,
        "address": info.address,
        "pid": status.pid or None,
        "state": state,
        "since_us": status.since_us,
        "polls": status.polls,
        "seen_us": status.seen_us or None,
        "accepted": status.accepted,
        "refused": status.refused,
        "orders": [
            {
                "at_us": ordered.at_us,
                "home": ordered.home,
                **order_shown(ordered.order),
                "accepted": ordered.accepted,
                "reason": ordered.reason,
            }
            for ordered in status.orders
        ],
        "advice": list(status.advice),
        "telemetry": _telemetry(status.telemetry) if status.HasField("telemetry") else None,
        "servers": [
            {
                "name": watched.name,
                "processing": watched.processing,
                "memory": watched.memory,
                "silent_s": watched.silent_s,
            }
            for watched in status.servers
        ],
    }


async def _sca(info: pb.ServerInfo) -> Shown:
    status = await transport.sca_status(info.address)
    return {
        "name": info.name,
        "address": info.address,
        "pid": status.pid if status is not None else None,
        "state": status.state if status is not None else UNREACHABLE,
        "devices": status.devices if status is not None else 0,
        "waiting_for": list(status.waiting_for) if status is not None else [],
        "commands": status.commands if status is not None else 0,
        "handed_over": status.handed_over if status is not None else 0,
    }


def _manager(message: pb.ManagerStatus) -> Shown:
    return {
        "name": message.manager.name,
        "address": message.manager.address,
        "state": "serving" if message.alive else UNREACHABLE,
        "peers": message.peers,
        "kept": message.kept,
    }
