"""The cluster as an operator sees it: the table, and what every program says of itself, as plain
mappings with the names that `--json` prints."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from utuple.cli import transport
from utuple.cluster.line import Line
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire

UNREACHABLE = "unreachable"

Shown = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    whole: bool
    lines: list[Line]
    servers: list[Shown]
    scas: list[Shown]
    managers: list[Shown]

    @property
    def is_well(self) -> bool:
        """Every program answers and serves, and every key has a line."""
        programs = [*self.servers, *self.scas, *self.managers]
        return self.whole and all(shown["state"] == "serving" for shown in programs)

    def table(self) -> list[Shown]:
        return [line_shown(line) for line in self.lines]


async def table_of(addresses: Sequence[str]) -> Snapshot:
    """The table alone: no server is asked."""
    answer = await transport.first_table_of(addresses)
    return Snapshot(answer.whole, _lines(answer.lines), [], [], [])


async def snapshot_of(addresses: Sequence[str]) -> Snapshot:
    answer = await transport.first_table_of(addresses)
    lines = _lines(answer.lines)
    places = {info.name: info.address for info in answer.servers if info.role in ("", "server")}
    for line in lines:
        for member in line.members:
            places.setdefault(member.name, "")
    scas = [info for info in answer.servers if info.role == "sca"]
    servers = await asyncio.gather(
        *(_server(name, places[name], lines) for name in sorted(places, key=_by_number))
    )
    return Snapshot(
        answer.whole,
        lines,
        list(servers),
        list(await asyncio.gather(*(_sca(info) for info in scas))),
        sorted(map(_manager, answer.managers), key=lambda shown: _by_number(shown["name"])),
    )


def _lines(messages: Sequence[pb.Line]) -> list[Line]:
    return sorted(map(line_from_wire, messages), key=lambda line: line.section)


def _by_number(name: str) -> tuple[str, int, str]:
    """server-2 before server-10."""
    head, _, number = name.rpartition("-")
    return (head, int(number), name) if number.isdecimal() else (name, 0, name)


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


async def _server(name: str, address: str, lines: Sequence[Line]) -> Shown:
    status = await transport.server_status(address) if address else None
    state = status.state if status is not None else UNREACHABLE
    status = status if status is not None else pb.ServerStatus()
    own = _lines(status.lines) or list(lines)
    load = status.load
    return {
        "name": name,
        "address": address,
        "pid": status.pid or None,
        "state": state,
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
        "readers": [
            {
                "reader": reader.reader,
                "formals": reader.formals,
                "connected": reader.connected,
                "lag": reader.lag,
            }
            for reader in status.readers
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
