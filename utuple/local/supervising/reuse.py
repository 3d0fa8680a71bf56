"""What `utuple up` was asked for against what the folder already holds, and servers that come and go after
that. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from load_monitor.elastic.settings import ElasticSettings, Kind
from load_monitor.planning.policy import LIVE, adjusted, knob_of, knobs_from
from load_monitor.telemetry import TelemetryConfig
from utuple.errors import InvalidInput
from utuple.local.capacity import capacities_of
from utuple.local.folder import ClusterFile, FolderError
from utuple.local.layout import (
    DEFAULT_MANAGERS,
    DEFAULT_PORT,
    DEFAULT_SERVERS,
    MAX_SCAS,
    MAX_SERVERS,
    Layout,
)

_SCHEMES = ("postgresql://", "postgres://")


def cluster_for(
    known: ClusterFile | None,
    *,
    servers: int | None,
    managers: int | None,
    port: int | None,
    scas: int | None = None,
    databases: Sequence[str] = (),
    unsafe: bool = False,
    monitor: bool | None = None,
    policy: Sequence[str] | None = None,
    mqtt: int | None = None,
    http: int | None = None,
    secure: bool | None = None,
    capacity: Sequence[str] = (),
) -> ClusterFile:
    """A new cluster on an empty folder, or the folder's own; None means "as it is"."""
    knobs = policy_of(policy) if policy is not None else None
    if known is None:
        layout = Layout(
            servers if servers is not None else DEFAULT_SERVERS,
            managers if managers is not None else DEFAULT_MANAGERS,
            port if port is not None else DEFAULT_PORT,
            monitor=monitor if monitor is not None else True,
            scas=_scas(scas),
            mqtt=mqtt or 0,
            http=http or 0,
        )
        own = _databases(databases, layout.servers)
        sizes = capacities_of(capacity, layout.server_names)
        made = ClusterFile(
            layout, own, unsafe, policy=knobs or (), secure=bool(secure), capacity=sizes
        )
        return made
    layout = known.layout
    if monitor is not None:
        layout = replace(layout, monitor=monitor)
    if mqtt is not None:
        layout = replace(layout, mqtt=mqtt)
    if http is not None:
        layout = replace(layout, http=http)
    for option, asked, kept in (
        ("--servers", servers, len(layout.server_names)),
        ("--managers", managers, layout.managers),
        ("--scas", scas, len(layout.scas)),
    ):
        if asked is not None and asked != kept:
            raise FolderError(
                f"{option} {asked} was asked for, but the cluster in this folder has {kept}: leave "
                f"{option} out to start it as it is, or choose another folder with --data"
            )
    if port is not None:  # names are for ever; addresses are announced anew at every start
        layout = replace(layout, port=port)
    if databases and bool(databases) != bool(known.databases):
        raise FolderError(
            "--database was given, but the uTuples of the cluster in this folder are in its embedded "
            "PostgreSQL: leave --database out, or choose another folder with --data"
        )
    # A database may have moved to another machine: its new URL is the truth.
    moved = _databases(databases, len(layout.server_names)) or known.databases
    changed = replace(
        known,
        layout=layout,
        databases=moved,
        unsafe=unsafe,
        policy=known.policy if knobs is None else knobs,
        capacity={**known.capacity, **capacities_of(capacity, layout.server_names)},
        secure=known.secure if secure is None else secure,
    )
    return changed


def with_telemetry(cluster: ClusterFile, folder: str | None, every_s: float | None) -> ClusterFile:
    """The load monitor keeps its samples there; None means "as it is"."""
    if folder is not None:
        cluster = replace(cluster, telemetry=folder)
    if every_s is not None:
        cluster = replace(cluster, telemetry_every_s=every_s)
    if cluster.telemetry and not cluster.layout.monitor:
        rule = "needs the load monitor: leave --no-monitor out"
        raise InvalidInput("--telemetry", cluster.telemetry, rule)
    TelemetryConfig(cluster.telemetry, cluster.telemetry_every_s)
    return cluster


def with_elastic(cluster: ClusterFile, settings: ElasticSettings) -> ClusterFile:
    """Servers come and go with the load."""
    if not cluster.layout.monitor:
        raise InvalidInput("--elastic", "", "needs the load monitor: leave --no-monitor out")
    if cluster.databases:
        rule = "gives each new server a database of the embedded PostgreSQL: leave --database out"
        raise InvalidInput("--elastic", "", rule)
    if settings.provisioner.kind is not Kind.LOCAL:
        rule = "must be local for a cluster on this machine; elsewhere, python -m load_monitor --elastic FILE"
        raise InvalidInput("provisioner.kind", settings.provisioner.kind.value, rule)
    rules = settings.policy.servers
    if rules.max > MAX_SERVERS:
        rule = f"a cluster on this machine has at most {MAX_SERVERS} servers"
        raise InvalidInput("servers.max", rules.max, rule)
    return replace(cluster, elastic=True)


def _scas(asked: int | None) -> tuple[int, ...]:
    """Their numbers."""
    if asked is not None and not 1 <= asked <= MAX_SCAS:
        raise InvalidInput("--scas", asked, f"must lie between 1 and {MAX_SCAS}")
    return tuple(range(1, (asked or 1) + 1))


def with_server(cluster: ClusterFile, name: str, database: str) -> ClusterFile:
    """One more server, the last of the layout's."""
    layout = cluster.layout.with_server(name or None)
    cluster = replace(cluster, new=(*cluster.new, layout.server_names[-1]))
    if not cluster.databases:
        if database:
            raise FolderError(
                "--database was given, but the servers of this cluster are in its embedded PostgreSQL: "
                "leave --database out"
            )
        return replace(cluster, layout=layout)
    if not database:
        raise FolderError(
            "each server of this cluster has a PostgreSQL of its own: name the new one's with "
            "--database postgresql://…"
        )
    databases = _databases((*cluster.databases, database), len(layout.server_names))
    return replace(cluster, layout=layout, databases=databases)


def without_server(cluster: ClusterFile, name: str) -> ClusterFile:
    """It was drained and does not come back."""
    names = cluster.layout.server_names
    layout = cluster.layout.without_server(name)
    kept = zip(names, cluster.databases, strict=True) if cluster.databases else ()
    return replace(
        cluster,
        layout=layout,
        databases=tuple(url for other, url in kept if other != name),
        leaving=tuple(other for other in cluster.leaving if other != name),
        new=tuple(other for other in cluster.new if other != name),
    )


def policy_of(knobs: Sequence[str]) -> tuple[str, ...]:
    """Knobs of the load monitor, checked as it would check them."""
    given = knobs_from(knobs)
    adjusted(LIVE, given)
    return tuple(f"{knob_of(name)}={value}" for name, value in given.items())


def _databases(databases: Sequence[str], servers: int) -> tuple[str, ...]:
    if databases and len(databases) != servers:
        raise FolderError(
            f"--database was given {len(databases)} times for {servers} servers: give it once for "
            "each, in their order, or leave it out for the embedded PostgreSQL"
        )
    for url in databases:
        if not url.startswith(_SCHEMES):
            raise FolderError(f"--database: {url!r} must begin with postgresql://")
    if len(set(databases)) != len(databases):
        raise FolderError("--database names one database twice: every server needs its own")
    return tuple(databases)
