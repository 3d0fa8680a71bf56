"""`utuple up` and `utuple down`: a whole cluster on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.limits import with_limits
from utuple.cli.options import Data
from utuple.cli.outcome import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from load_monitor.elastic.settings import ElasticSettings
    from utuple.local.folder import ClusterFile, DataFolder

_OFF = "off"

Servers = Annotated[int | None, typer.Option(help="How many uTupleServers.", show_default="3")]
Managers = Annotated[
    int | None, typer.Option(help="How many assignment managers.", show_default="3")
]
Scas = Annotated[
    int | None,
    typer.Option(help="How many sCA servers; each has a share of the devices.", show_default="1"),
]
Port = Annotated[
    int | None,
    typer.Option(
        help="Managers listen from here on, servers from 11 above, the sCA server 21 above (more of them from 23 "
        "above), the load monitor 22 above.",
        show_default="7400",
    ),
]
Detach = Annotated[
    bool, typer.Option("--detach", help="Return when it is ready, and leave it running.")
]
Databases = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="A PostgreSQL of your own, once for each server; without it, an embedded one.",
    ),
]
Unsafe = Annotated[
    bool, typer.Option("--unsafe", help="Accept databases that may lose what was answered OK.")
]
Monitor = Annotated[
    bool | None,
    typer.Option(
        "--monitor/--no-monitor",
        help="With the load monitor, which moves load between servers; or without, and load stays "
        "where it is.",
        show_default="monitor",
    ),
]
Policy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="A knob of the load monitor, such as T_p=0.7 (or processing_start=0.7) or stay_on_s=30; may be "
        "given several times. All of them: python -m load_monitor --help.",
    ),
]

Telemetry = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep the load monitor's samples there, as Parquet files by day, for `utuple plan forecast`.",
    ),
]
TelemetryEvery = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Between two samples.", show_default="60"),
]

Mqtt = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        help="With an MQTT door that listens there (1883 is the usual port); 0 on a folder that has one: without it.",
    ),
]

Elastic = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Servers come and go with the load, as this elastic.toml says (docs/elasticity.md); `off` on a folder that has "
        "one: they stay as they are.",
    ),
]
Http = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        help="The HTTP door and the console listen there.",
        show_default="80 above --port, or a free one if that is taken",
    ),
]
NoHttp = Annotated[bool, typer.Option("--no-http", help="Without the HTTP door and the console.")]


Secure = Annotated[
    bool | None,
    typer.Option(
        "--secure/--no-secure",
        help="Everybody shows credentials and does what he was granted: makes an authority, operator.creds and the "
        "programs' credentials in the folder (docs/security.md).",
        show_default="as it was; not secured at first",
    ),
]


Capacity = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]SIZE",
        help="What a store may grow to, such as 200MB, of every server, or of one: server-1=200MB; may be given several "
        "times. At T_m of it another server takes over what comes. Kept in the data folder.",
        show_default="140GB",
    ),
]


Limit = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PROGRAM.NAME=VALUE",
        help="A limit of what one identity may use, such as server.share_efs=1000, sca.share_cfs=5000 or "
        "manager.connections_per_address=200; may be given several times (docs/security.md). Kept in the data folder.",
    ),
]


def up(
    servers: Servers = None,
    managers: Managers = None,
    scas: Scas = None,
    port: Port = None,
    data: Data = None,
    detach: Detach = False,
    database: Databases = None,
    unsafe: Unsafe = False,
    monitor: Monitor = None,
    policy: Policy = None,
    telemetry: Telemetry = None,
    telemetry_every: TelemetryEvery = None,
    mqtt: Mqtt = None,
    elastic: Elastic = None,
    http: Http = None,
    no_http: NoHttp = False,
    secure: Secure = None,
    capacity: Capacity = None,
    limit: Limit = None,
) -> None:
    """Start a cluster on this machine, and keep it alive until Ctrl-C.

    On a folder that has one already, that one is started as it was left:
    with the servers added since, and without those that were drained;
    with --port at other ports, where it stays.
    """
    from load_monitor.recorder import check_telemetry
    from utuple.local.ports import check_free
    from utuple.local.supervising.reuse import cluster_for, with_elastic, with_telemetry

    folder = folder_of(data)
    known = folder.read_cluster()
    settings = _elastic_settings(elastic)
    if settings is not None and servers is None and known is None:
        servers = settings.policy.servers.min
    cluster = cluster_for(
        known,
        servers=servers,
        managers=managers,
        scas=scas,
        port=port,
        databases=database or (),
        unsafe=unsafe,
        monitor=monitor,
        policy=policy or None,
        mqtt=mqtt,
        http=0 if no_http else http,
        secure=secure,
        capacity=capacity or (),
    )
    wants_door = http is None and not no_http
    if wants_door and (known is None or known.layout.http):
        cluster = _with_door(folder, cluster)
    samples = str(telemetry.expanduser().resolve()) if telemetry is not None else None
    cluster = with_limits(with_telemetry(cluster, samples, telemetry_every), limit or ())
    if settings is not None:
        cluster = with_elastic(cluster, settings)
    cluster = replace(cluster, elastic=cluster.elastic and elastic != _OFF)
    if cluster.telemetry:
        check_telemetry(cluster.telemetry)
    folder.make()
    with folder.lock():  # one that runs is refused before its cluster.json is touched
        running = folder.all_started()
        check_free(p for p in cluster.layout.programs if p.name not in running)
        _check_stored(folder, known if capacity else None, cluster)
        if settings is not None and elastic is not None:
            folder.elastic.write_bytes(Path(elastic).read_bytes())
        folder.write_cluster(cluster)
    (_start_in_background if detach else _run_in_foreground)(folder, cluster)


def _check_stored(folder: DataFolder, known: ClusterFile | None, cluster: ClusterFile) -> None:
    """Before anything is changed; None: there is nothing to be below."""
    if known is None:
        return
    import asyncio

    from utuple.cli.stored import stored_in
    from utuple.local.capacity import check_stored

    check_stored(cluster.capacity, asyncio.run(stored_in(folder, known)))


def _elastic_settings(file: str | None) -> ElasticSettings | None:
    """None: as it is, or off."""
    if file is None or file == _OFF:
        return None
    from load_monitor.elastic.settings import settings_of
    from utuple.cli.elastic.simulate import read_text

    return settings_of(read_text(Path(file)), file)


def _with_door(folder: DataFolder, cluster: ClusterFile) -> ClusterFile:
    """An HTTP door where it was, or at its usual port; where that is taken at another, which is said."""
    from dataclasses import replace

    from utuple.local.layout import HTTP_OFFSET
    from utuple.local.ports import free_port

    layout = cluster.layout
    wanted = layout.http or layout.port + HTTP_OFFSET
    if "http-1" in folder.all_started():
        return cluster
    port = free_port(wanted)
    if port != wanted:
        typer.echo(
            f"Port {wanted} is in use by another program: the HTTP door and the console are at {port}. "
            "--http PORT chooses one, --no-http leaves them out.",
            err=True,
        )
    return replace(cluster, layout=replace(layout, http=port))


def down(data: Data = None) -> None:
    """Stop the cluster that `utuple up` started, and see that nothing of it is left."""
    from utuple.local.supervising.stopping import stop_cluster

    folder = folder_of(data)
    if stop_cluster(folder):
        typer.echo(f"The cluster in {folder.path} is stopped; its uTuples are kept there.")
    else:
        typer.echo(f"Nothing runs in {folder.path}.")


def folder_of(data: Path | None, at: Sequence[str] = ()) -> DataFolder:
    """The one that is named; or that of the cluster at this address; or the usual one."""
    from utuple.local.folder import DataFolder, default_folder
    from utuple.local.supervising.registry import folder_at

    if data is not None:
        return DataFolder(data)
    return folder_at(at) or DataFolder(default_folder())


def _start_in_background(folder: DataFolder, cluster: ClusterFile) -> None:
    from rich.console import Console

    from utuple.local.supervising.daemon import start_detached

    with Console(stderr=True).status("starting the cluster") as status:
        start_detached(folder, lambda said: status.update(said or "starting the cluster"))
    _show_places(folder, cluster)
    typer.echo(f"Ready. Stop it with: utuple down --data {folder.path}")


def _run_in_foreground(folder: DataFolder, cluster: ClusterFile) -> None:
    import asyncio
    import signal
    from datetime import datetime

    from utuple.local.supervising.daemon import supervise

    def say(said: str) -> None:
        typer.echo(f"{datetime.now().astimezone():%H:%M:%S} {said}")

    def on_ready() -> None:
        _show_places(folder, cluster)
        say("ready; Ctrl-C stops it")

    asked = asyncio.run(supervise(folder, cluster, say, on_ready))
    if asked is signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _show_places(folder: DataFolder, cluster: ClusterFile) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"The cluster in {folder.path}", title_justify="left", box=SIMPLE_HEAD)
    for column in ("program", "listens on", "pid", "log"):
        table.add_column(column, overflow="fold")
    for program in cluster.layout.programs:
        started = folder.started(program.name)
        pid = str(started.process.pid) if started is not None else "-"
        table.add_row(program.name, program.address, pid, f"logs/{program.name}.log")
    Console().print(table)
    scheme = "https" if cluster.secure else "http"
    if cluster.layout.http:
        typer.echo(f"Console: {scheme}://127.0.0.1:{cluster.layout.http}/")
    if cluster.secure:
        operator, at = folder.trust.operator, cluster.layout.manager_addresses[0]
        typer.echo("It is secured. As its operator:")
        typer.echo(f"  export UTUPLE_AT={at} UTUPLE_CREDENTIALS={operator}")
        if cluster.layout.http:
            typer.echo("The console, signed in:  utuple token --console")
        typer.echo("Others get credentials of their own from you, such as:")
        typer.echo("  utuple grant truck-17 --as device --emit truck/load -o truck-17.creds")
        typer.echo(f'  utuple.connect("{at}", credentials="truck-17.creds")')
