"""What each program of a cluster says of itself, as values. Pure, but for the messages it reads.

The fields are those that `--json` prints, in that order; a program that does not answer has their defaults. Ends of sections
are in hexadecimal: the last end does not fit 64 bits, nor JSON's safe numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from utuple.admin.moves import ShownOrder, ordered_of
from utuple.admin.readers import Reader, reader_of
from utuple.cluster.dimension import Bound
from utuple.cluster.line import Line, Member
from utuple.cluster.shares import AWAY
from utuple.model.columns import MICROSECONDS
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire

UNREACHABLE = "unreachable"
SERVING = "serving"
WATCHING = "watching"
WELL = (SERVING, WATCHING)


@dataclass(frozen=True, slots=True)
class ShownAxis:
    """By what a line is partitioned: segment i lies between bound i-1, included, and bound i."""

    dimension: str
    bounds: tuple[Bound, ...]
    owners: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line of the assignment table."""

    start: str
    end: str
    epoch: int
    home: str
    members: tuple[Member, ...]
    axes: tuple[ShownAxis, ...] = ()


@dataclass(frozen=True, slots=True)
class Flag:
    """A server's flag in one of its lines."""

    start: str
    end: str
    epoch: int
    accumulatable: bool
    suspended: bool
    home: str


@dataclass(frozen=True, slots=True)
class ByCause:
    """What keeps a server busy, or a section at it: shares of time. Help relieves it of all but the searches."""

    events: float = 0.0
    searches: float = 0.0
    deliveries: float = 0.0


@dataclass(frozen=True, slots=True)
class Load:
    busy: float = 0.0
    queued: float = 0.0
    arrival_per_s: float = 0.0
    service_per_s: float = 0.0
    by_cause: ByCause = ByCause()
    commit_s: float = 0.0
    """What a batch took of late until it was durable and answered."""


@dataclass(frozen=True, slots=True)
class SectionLoad:
    start: str
    end: str
    rows: int = 0
    templates: int = 0
    arrival_per_s: float = 0.0
    by_cause: ByCause = ByCause()


@dataclass(frozen=True, slots=True)
class FamilyLoad:
    """One of a server's busiest families."""

    subject: str
    type: str
    arrival_per_s: float = 0.0
    templates: int = 0
    """EFs and CAs."""
    event_templates: int = 0
    """Of these, EFs."""
    mean_bytes: float = 0.0
    """The data of an EA."""


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    address: str = ""
    pid: int | None = None
    state: str = UNREACHABLE
    leaving: bool = False
    shipments: int = 0
    from_servers: int = 0
    load: Load = Load()
    flags: tuple[Flag, ...] = ()
    seq: int = 0
    events: int = 0
    devices: int = 0
    event_templates: int = 0
    command_templates: int = 0
    size_bytes: int = 0
    capacity_bytes: int = 0
    registered: int = 0
    delivered: int = 0
    since_us: int = 0
    sections: tuple[SectionLoad, ...] = ()
    readers: tuple[Reader, ...] = ()
    families: tuple[FamilyLoad, ...] = ()
    """The busiest."""

    @property
    def serves(self) -> bool:
        return self.state == SERVING

    @property
    def stays(self) -> bool:
        """It serves, and is not about to leave."""
        return self.serves and not self.leaving


@dataclass(frozen=True, slots=True)
class Sca:
    name: str
    address: str = ""
    pid: int | None = None
    state: str = UNREACHABLE
    devices: int = 0
    waiting_for: tuple[str, ...] = ()
    commands: int = 0
    handed_over: int = 0
    connected: int = 0
    """Of its devices, those whose programs are attached."""
    scas: tuple[str, ...] = ()
    """Among whom it knows the devices to be shared out."""
    settled: bool = False
    """No device is on its way to it."""


@dataclass(frozen=True, slots=True)
class Manager:
    name: str
    address: str = ""
    state: str = UNREACHABLE
    peers: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Telemetry:
    folder: str
    written: int
    waiting: int
    dropped: int
    failures: int


@dataclass(frozen=True, slots=True)
class Watched:
    """A server as a load monitor sees it."""

    name: str
    processing: float = 0.0
    memory: float = 0.0
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ShownMachine:
    """What servers run on."""

    name: str
    cpu: int
    memory_mb: float
    ready: bool
    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownAction:
    at_us: int
    what: str
    why: str
    failed: str
    """Empty: it was done."""


@dataclass(frozen=True, slots=True)
class Elastic:
    """What elasticity sees and does."""

    acts: bool
    """Of several controllers one acts."""
    servers: int
    wanted: int
    why: str
    waits: str
    warning: str
    waiting: tuple[str, ...]
    """Servers without a place."""
    machines: tuple[ShownMachine, ...]
    done: tuple[ShownAction, ...]
    """The newest first."""


@dataclass(frozen=True, slots=True)
class Monitor:
    name: str
    address: str = ""
    pid: int | None = None
    state: str = UNREACHABLE
    since_us: int = 0
    polls: int = 0
    seen_us: int | None = None
    accepted: int = 0
    refused: int = 0
    orders: tuple[ShownOrder, ...] = ()
    """The newest first."""
    advice: tuple[str, ...] = ()
    telemetry: Telemetry | None = None
    servers: tuple[Watched, ...] = ()
    elastic: Elastic | None = None


Program = Server | Sca | Manager | Monitor


# --- from what they say


def lines_of(messages: Iterable[pb.Line]) -> list[Line]:
    return sorted(map(line_from_wire, messages), key=lambda line: line.section)


def shown_line(line: Line) -> ShownLine:
    axes = tuple(ShownAxis(axis.dimension, axis.cuts, axis.owners) for axis in line.layout.axes)
    return ShownLine(*_ends(line), line.epoch, line.home, line.members, axes)


def flags_of(name: str, lines: Iterable[Line]) -> tuple[Flag, ...]:
    members = ((line, line.member(name)) for line in lines)
    return tuple(
        Flag(*_ends(line), line.epoch, member.accumulatable, member.suspended, line.home)
        for line, member in members
        if member is not None
    )


def server_of(
    name: str, address: str, status: pb.ServerStatus | None, lines: Sequence[Line]
) -> Server:
    """`lines` are the table's, for a server that does not say its own."""
    if status is None:
        return Server(name, address, flags=flags_of(name, lines))
    load = status.load
    return Server(
        name,
        address,
        status.pid or None,
        status.state,
        status.leaving,
        status.shipments,
        status.from_servers,
        Load(
            load.busy,
            load.queued,
            load.arrival_per_s,
            load.service_per_s,
            _causes_of(status.by_cause),
            status.commit_us / MICROSECONDS,
        ),
        flags_of(name, lines_of(status.lines) or lines),
        seq=status.seq,
        events=status.events,
        devices=status.devices,
        event_templates=status.event_templates,
        command_templates=status.command_templates,
        size_bytes=status.size_bytes,
        capacity_bytes=status.capacity_bytes,
        registered=status.registered,
        delivered=status.delivered,
        since_us=status.since_us,
        sections=tuple(map(_section_of, status.sections)),
        readers=tuple(map(reader_of, status.readers)),
        families=tuple(
            FamilyLoad(
                of.subject,
                of.type,
                of.arrival_per_s,
                of.templates,
                of.event_templates,
                of.mean_bytes,
            )
            for of in status.families
        ),
    )


def _section_of(message: pb.SectionStatus) -> SectionLoad:
    ends = f"{message.start:016x}", f"{message.last + 1:016x}"
    return SectionLoad(
        *ends,
        message.rows,
        message.templates,
        message.arrival_per_s,
        _causes_of(message.by_cause),
    )


def _causes_of(message: pb.LoadByCause) -> ByCause:
    return ByCause(message.events, message.searches, message.deliveries)


def sca_of(info: pb.ServerInfo, status: pb.ScaStatus | None) -> Sca:
    if status is None:
        return Sca(info.name, info.address, state=AWAY if info.role == AWAY else UNREACHABLE)
    return Sca(
        info.name,
        info.address,
        status.pid,
        status.state,
        status.devices,
        tuple(status.waiting_for),
        status.commands,
        status.handed_over,
        status.connected,
        tuple(status.scas),
        status.settled,
    )


def manager_of(message: pb.ManagerStatus) -> Manager:
    state = SERVING if message.alive else UNREACHABLE
    info = message.manager
    return Manager(info.name, info.address, state, message.peers, message.kept)


def monitor_of(info: pb.ServerInfo, status: pb.MonitorStatus | None) -> Monitor:
    if status is None:
        return Monitor(info.name, info.address)
    rows = status.telemetry
    return Monitor(
        info.name,
        info.address,
        status.pid or None,
        status.state,
        status.since_us,
        status.polls,
        status.seen_us or None,
        status.accepted,
        status.refused,
        tuple(map(ordered_of, status.orders)),
        tuple(status.advice),
        Telemetry(rows.folder, rows.written, rows.waiting, rows.dropped, rows.failures)
        if status.HasField("telemetry")
        else None,
        tuple(Watched(s.name, s.processing, s.memory, s.silent_s) for s in status.servers),
        elastic_of(status.elastic) if status.HasField("elastic") else None,
    )


def elastic_of(message: pb.Elastic) -> Elastic:
    return Elastic(
        message.acts,
        message.servers,
        message.wanted,
        message.why,
        message.waits,
        message.warning,
        tuple(message.waiting),
        tuple(
            ShownMachine(m.name, m.cpu, m.memory_mb, m.ready, tuple(m.servers))
            for m in message.machines
        ),
        tuple(ShownAction(d.at_us, d.what, d.why, d.failed) for d in message.done),
    )


def _ends(line: Line) -> tuple[str, str]:
    return f"{line.section.start:016x}", f"{line.section.end:016x}"
