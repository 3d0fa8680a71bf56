"""A snapshot of the cluster in Prometheus's terms: what is measured, with its unit and labels. One row of the tables
below is one metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from utuple.admin.programs import WELL, Manager, Monitor, Program, Sca, Server
from utuple.admin.readers import Reader
from utuple.admin.snapshot import Snapshot

Of = TypeVar("Of")
Asked = TypeVar("Asked", bound=Program)


@dataclass(frozen=True, slots=True)
class Row(Generic[Of]):
    name: str
    what: str
    of: Callable[[Of], float]
    counts: bool = False
    """It only grows, until its program starts anew."""


PROGRAM: tuple[Row[Program], ...] = (
    Row("up", "1 if it answers and serves.", lambda of: of.state in WELL),
)
SERVER: tuple[Row[Server], ...] = (
    Row("busy", "Its processing load: writer, searches and deliveries.", lambda of: of.load.busy),
    Row("busy_events", "Its share for EAs and CFs.", lambda of: of.load.by_cause.events),
    Row("busy_searches", "Its share for EFs and searches.", lambda of: of.load.by_cause.searches),
    Row("busy_deliveries", "Its share for deliveries.", lambda of: of.load.by_cause.deliveries),
    Row("queued", "uTuples that wait for the writer.", lambda of: of.load.queued),
    Row(
        "arrivals_per_second",
        "uTuples that come, of late.",
        lambda of: of.load.arrival_per_s,
    ),
    Row(
        "services_per_second",
        "uTuples it could take, of late.",
        lambda of: of.load.service_per_s,
    ),
    Row(
        "commit_seconds",
        "What a batch took of late until it was durable and answered.",
        lambda of: of.load.commit_s,
    ),
    Row("events", "EAs stored.", lambda of: of.events),
    Row("devices", "CFs stored.", lambda of: of.devices),
    Row("event_templates", "EFs stored.", lambda of: of.event_templates),
    Row("command_templates", "CAs stored.", lambda of: of.command_templates),
    Row("size_bytes", "Size of its store.", lambda of: of.size_bytes),
    Row("capacity_bytes", "What its store may grow to.", lambda of: of.capacity_bytes),
    Row("sections", "Lines it is a member of.", lambda of: len(of.flags)),
    Row("registered", "uTuples registered.", lambda of: of.registered, counts=True),
    Row("delivered", "Deliveries to readers.", lambda of: of.delivered, counts=True),
    Row(
        "from_servers",
        "Calls of other servers: none while no load moves.",
        lambda of: of.from_servers,
        counts=True,
    ),
)
READER: tuple[Row[Reader], ...] = (
    Row("formals", "EFs of this reader.", lambda of: of.formals),
    Row("connected", "1 if it is connected.", lambda of: of.connected),
    Row("lag", "How far its slowest EF is behind the server's seq.", lambda of: of.lag),
    Row("dropped", "Matches dropped while it was away.", lambda of: of.dropped, counts=True),
    Row("parked", "Deliveries that were tried too often.", lambda of: of.parked),
)
SCA: tuple[Row[Sca], ...] = (
    Row("devices", "CFs known.", lambda of: of.devices),
    Row("commands", "Simple commands taken.", lambda of: of.commands, counts=True),
    Row("handed_over", "Commands given to devices.", lambda of: of.handed_over, counts=True),
)
MANAGER: tuple[Row[Manager], ...] = (
    Row("peers", "Peers it hosts.", lambda of: of.peers),
    Row("kept", "Lines it keeps.", lambda of: of.kept),
)
MONITOR: tuple[Row[Monitor], ...] = (
    Row("polls", "Looks at the cluster.", lambda of: of.polls, counts=True),
    Row("accepted", "Moves it ordered that were begun.", lambda of: of.accepted, counts=True),
    Row("refused", "Moves it ordered that were refused.", lambda of: of.refused, counts=True),
)


def families_of(snapshot: Snapshot) -> Iterator[Metric]:
    yield _gauge("utuple_table_whole", "1 if every key has a line.", snapshot.whole)
    yield _gauge("utuple_table_lines", "Lines of the assignment table.", len(snapshot.lines))
    yield _gauge(
        "utuple_table_members",
        "Members of all lines.",
        sum(len(line.members) for line in snapshot.lines),
    )
    yield _moves(snapshot)
    yield from _programs("server", snapshot.servers, SERVER)
    yield from _programs("sca", snapshot.scas, SCA)
    yield from _programs("manager", snapshot.managers, MANAGER)
    yield from _programs("monitor", snapshot.monitors, MONITOR)
    readers = [
        ([server.name, reader.reader], reader)
        for server in snapshot.servers
        for reader in server.readers
        if reader.reader
    ]
    yield from _families("reader", ["server", "reader"], readers, READER)


def _programs(role: str, programs: Sequence[Asked], rows: Sequence[Row[Asked]]) -> Iterator[Metric]:
    """Of one that does not serve only that is told: its other figures would be old, or none."""
    yield from _families(role, ["name"], [([one.name], one) for one in programs], PROGRAM)
    heard = [([one.name], one) for one in programs if one.state in WELL]
    yield from _families(role, ["name"], heard, rows)


def _families(
    role: str, labels: list[str], shown: Sequence[tuple[list[str], Of]], rows: Sequence[Row[Of]]
) -> Iterator[Metric]:
    for row in rows:
        kind = CounterMetricFamily if row.counts else GaugeMetricFamily
        family = kind(f"utuple_{role}_{row.name}", row.what, labels=labels)
        for label, of in shown:
            family.add_metric(label, float(row.of(of)))
        yield family


def _moves(snapshot: Snapshot) -> Metric:
    family = GaugeMetricFamily("utuple_moves", "Moves on record.", labels=["kind", "step"])
    counts: dict[tuple[str, str], int] = {}
    for move in snapshot.moves:
        key = (move.kind, move.step)
        counts[key] = counts.get(key, 0) + 1
    for key, count in sorted(counts.items()):
        family.add_metric(list(key), count)
    return family


def _gauge(name: str, what: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, what)
    family.add_metric([], float(value))
    return family
