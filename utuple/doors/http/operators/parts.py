"""A snapshot as the parts of a page, each of which travels only when it has changed. Pure.

summary   is it well, what is missing, advice, totals
servers   load, memory, what each holds
lines     the table: [start, end, epoch, [[server, on, suspended], …], [[dimension, bounds], …]] each, the last of a partitioned
          line; when it changes, the lines that do
moves     the newest, with their steps and reasons
readers   who reads, and how far each is behind
families  the busiest, of all servers together
programs  managers, sCA servers, monitors; and until when the certificates of a secured cluster hold
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple
from typing import Any

from utuple.admin.moves import sentence
from utuple.admin.programs import Server
from utuple.admin.snapshot import Snapshot
from utuple.cluster.line import Line

MOVES_SHOWN = 100
READERS_SHOWN = 1_000
_LEFT_OUT = ("flags", "sections", "readers", "families")

LinePart = list[Any]


def line_part(line: Line) -> LinePart:
    members = [[m.name, m.accumulatable, m.suspended] for m in line.members]
    axes = [[axis.dimension, list(axis.cuts)] for axis in line.layout.axes]
    return [f"{line.section.start:016x}", f"{line.section.end:x}", line.epoch, members, axes]


def server_part(server: Server) -> dict[str, Any]:
    said = asdict(server)
    for name in _LEFT_OUT:
        said.pop(name)
    said["sections"] = len(server.flags)
    said["on"] = sum(flag.accumulatable for flag in server.flags)
    said["home"] = sum(flag.home == server.name for flag in server.flags)
    return said


def families_part(servers: Iterable[Server]) -> list[dict[str, Any]]:
    """Of all servers together, the busiest first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for server in servers:
        for family in server.families:
            one = found.setdefault(
                (family.subject, family.type),
                {
                    "subject": family.subject,
                    "type": family.type,
                    "arrival_per_s": 0.0,
                    "bytes_per_s": 0.0,
                    "event_templates": 0,
                    "command_templates": 0,
                    "servers": [],
                },
            )
            one["arrival_per_s"] += family.arrival_per_s
            one["bytes_per_s"] += family.arrival_per_s * family.mean_bytes
            commands = family.templates - family.event_templates
            one["event_templates"] = max(one["event_templates"], family.event_templates)
            one["command_templates"] = max(one["command_templates"], commands)
            one["servers"].append(server.name)
    return sorted(found.values(), key=lambda one: (-one["arrival_per_s"], -one["event_templates"]))


def readers_part(servers: Iterable[Server]) -> list[dict[str, Any]]:
    rows = [{"server": s.name, **asdict(reader)} for s in servers for reader in s.readers]
    rows.sort(key=lambda row: (-row["lag"], row["reader"], row["server"]))
    return rows[:READERS_SHOWN]


def parts_of(snapshot: Snapshot) -> dict[str, Any]:
    servers = snapshot.servers
    moves = [{**asdict(move), "said": sentence(move)} for move in snapshot.moves[-MOVES_SHOWN:]]
    return {
        "summary": {
            "well": snapshot.is_well,
            "whole": snapshot.whole,
            "missing": snapshot.missing,
            "advice": snapshot.advice,
            "sections": len(snapshot.lines),
            "events": sum(server.events for server in servers),
            "devices": sum(server.devices for server in servers),
            "templates": sum(server.event_templates for server in servers),
            "arrival_per_s": sum(server.load.arrival_per_s for server in servers),
            "under_way": len(snapshot.under_way),
            "unreachable": [s.name for s in servers if not s.serves],
        },
        "servers": [server_part(server) for server in servers],
        "lines": [line_part(line) for line in snapshot.lines],
        "moves": moves[::-1],
        "families": families_part(servers),
        "programs": {
            "managers": [asdict(one) for one in snapshot.managers],
            "scas": [asdict(one) for one in snapshot.scas],
            "monitors": [
                {k: v for k, v in asdict(one).items() if k not in ("orders", "servers")}
                for one in snapshot.monitors
            ],
            "certificates": [asdict(one) for one in snapshot.certificates],
        },
    }


def changed_lines(old: Sequence[LinePart], new: Sequence[LinePart]) -> dict[str, Any] | None:
    """What to do to the old table to get the new one; None if it is the same. Lines are known by their starts."""
    before = {line[0]: line for line in old}
    after = {line[0]: line for line in new}
    gone = [start for start in before if start not in after]
    put = [line for start, line in after.items() if before.get(start) != line]
    return {"gone": gone, "put": put} if gone or put else None


def sample_of(servers: Iterable[Server]) -> dict[str, list[float]]:
    """Of each server: busy, memory, queue, seconds of a commit, and what it is busy with: events, searches, deliveries."""
    return {
        server.name: [
            round(server.load.busy, 3),
            round(server.size_bytes / server.capacity_bytes, 4) if server.capacity_bytes else 0.0,
            round(server.load.queued, 1),
            round(server.load.commit_s, 4),
            *(round(share, 3) for share in astuple(server.load.by_cause)),
        ]
        for server in servers
        if server.serves
    }
