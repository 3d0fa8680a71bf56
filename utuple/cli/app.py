"""The commands of `utuple`. What is heavy is imported inside them, so that --help is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from utuple.cli import life, look, reading
from utuple.cli.bench import bench
from utuple.cli.command import command
from utuple.cli.emit import emit
from utuple.cli.found import found
from utuple.cli.metrics.command import metrics
from utuple.cli.moving.add import add
from utuple.cli.moving.drain import drain
from utuple.cli.moving.help import help_server
from utuple.cli.moving.log import moves
from utuple.cli.options import Json
from utuple.cli.outcome import told
from utuple.cli.plan.command import plan
from utuple.cli.readers import readers

app = typer.Typer(
    name="utuple",
    help="uTupleSpace: sensor programs, actuator programs and applications share data "
    "without knowing each other.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"utuple {version('utuple')}")
        raise typer.Exit


@app.callback()
def utuple(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """uTupleSpace: sensor programs, actuator programs and applications share data."""


server = typer.Typer(help="uTupleServers: add, drain, help, list.", no_args_is_help=True)
server.command("add")(told(add))
server.command("drain")(told(drain))
server.command("help")(told(help_server))
server.command("list")(told(look.list_servers))

for work in (life.up, life.down, found, look.status, look.table, moves, metrics):
    app.command()(told(work))
app.add_typer(server, name="server")
app.add_typer(readers, name="readers")
for verb in (emit, reading.watch, reading.read, reading.serve, command):
    app.command()(told(verb))


def demo(json: Json = False) -> None:
    """Show a cluster at work: trucks, air conditioners, a server killed, every delivery checked."""
    from utuple.cli.demo.command import run

    raise typer.Exit(run(json))


app.command()(told(demo))


def chaos(
    minutes: Annotated[
        float, typer.Option(min=0.0, help="How long faults and moves go on.")
    ] = 10.0,
    json: Json = False,
    seed: Annotated[
        int | None, typer.Option(help="Which faults come is drawn from it.", show_default="random")
    ] = None,
    servers: Annotated[int, typer.Option(min=1, max=8, help="How many uTupleServers.")] = 4,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep logs and history also if all went well.")
    ] = False,
) -> None:
    """Run a cluster of its own under load, kill, stop and cut its parts, and check every delivery."""
    from utuple.cli.chaos.command import run

    raise typer.Exit(run(minutes=minutes, json=json, seed=seed, servers=servers, keep=keep))


app.command()(told(chaos))
app.add_typer(bench, name="bench")
app.add_typer(plan, name="plan")
