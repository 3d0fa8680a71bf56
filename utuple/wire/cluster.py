"""Lines, servers and load on the wire."""

from __future__ import annotations

from functools import lru_cache

from utuple.cluster.line import Line, Member, ServerInfo
from utuple.cluster.load import Load
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb

REMEMBERED = 4_096
"""Lines and servers are told again and again, mostly the same ones: so many are read only once."""


def line_to_wire(line: Line) -> pb.Line:
    return pb.Line(
        start=line.section.start,
        last=line.section.end - 1,
        epoch=line.epoch,
        members=[
            pb.Member(
                name=member.name, accumulatable=member.accumulatable, suspended=member.suspended
            )
            for member in line.members
        ],
    )


def line_from_wire(message: pb.Line) -> Line:
    return _line(message.SerializeToString())


@lru_cache(REMEMBERED)
def _line(raw: bytes) -> Line:
    message = pb.Line.FromString(raw)
    return Line(
        Section(message.start, message.last + 1),
        message.epoch,
        tuple(Member(m.name, m.accumulatable, m.suspended) for m in message.members),
    )


def server_to_wire(server: ServerInfo) -> pb.ServerInfo:
    return pb.ServerInfo(
        name=server.name, address=server.address, role=server.role, since_us=server.since_us
    )


def server_from_wire(message: pb.ServerInfo) -> ServerInfo:
    return _server(message.SerializeToString())


@lru_cache(REMEMBERED)
def _server(raw: bytes) -> ServerInfo:
    message = pb.ServerInfo.FromString(raw)
    return ServerInfo(message.name, message.address, message.role or "server", message.since_us)


def load_to_wire(load: Load) -> pb.Load:
    return pb.Load(
        queued=load.queued,
        arrival_per_s=load.arrival_per_s,
        service_per_s=load.service_per_s,
        busy=load.busy,
        templates=load.templates,
    )


def load_from_wire(message: pb.Load) -> Load:
    return Load(
        message.queued,
        message.arrival_per_s,
        message.service_per_s,
        message.busy,
        message.templates,
    )
