"""The commands of `utuple`. What is heavy is imported inside them, so that --help is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from utuple.cli import harness, life
from utuple.cli.doctor.command import doctor
from utuple.cli.elastic.command import elastic
from utuple.cli.found import found
from utuple.cli.looking import look
from utuple.cli.looking.commands import commands
from utuple.cli.looking.readers import readers
from utuple.cli.looking.top import top
from utuple.cli.metrics.command import metrics
from utuple.cli.moving import scas
from utuple.cli.moving.add import add
from utuple.cli.moving.drain import drain
from utuple.cli.moving.help import help_server
from utuple.cli.moving.log import moves
from utuple.cli.moving.partition import partition as partition_server
from utuple.cli.options import Json, print_json
from utuple.cli.outcome import FAILED, INTERRUPTED, told
from utuple.cli.plan.command import plan
from utuple.cli.replaying.command import map_file, replay
from utuple.cli.trusting.authority import authority
from utuple.cli.trusting.giving import grant, revoke
from utuple.cli.trusting.looking import audit, grants, whoami
from utuple.cli.trusting.tokens import token
from utuple.cli.verbs import reading
from utuple.cli.verbs.command import command
from utuple.cli.verbs.emit import emit

app = typer.Typer(
    name="utuple",
    help="uTupleSpace: sensor programs, actuator programs and applications share data "
    "without knowing each other.",
    no_args_is_help=True,
    add_completion=True,
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
server.command("partition")(told(partition_server))
server.command("list")(told(look.list_servers))

sca = typer.Typer(
    help="sCA servers, which share the devices out for simple commands: add, remove, list.",
    no_args_is_help=True,
)
sca.command("add")(told(scas.add))
sca.command("remove")(told(scas.remove))
sca.command("list")(told(look.list_scas))

for work in (life.up, life.down, found, look.status, look.table, moves, metrics, commands):
    app.command()(told(work))
for right in (grant, revoke, token, grants, audit, whoami):
    app.command()(told(right))
app.add_typer(authority, name="authority")
for look_ in (top, doctor, replay):
    app.command()(told(look_))
app.command("map")(told(map_file))
app.add_typer(server, name="server")
app.add_typer(sca, name="sca")
app.add_typer(readers, name="readers")
for verb in (emit, reading.watch, reading.read, reading.serve, command):
    app.command()(told(verb))


def demo(
    secure: Annotated[
        bool, typer.Option("--secure", help="The same on a secured cluster: TLS, and grants.")
    ] = False,
    json: Json = False,
) -> None:
    """Show a cluster at work: trucks, air conditioners, a server killed, every delivery checked."""
    from utuple.demo.command import run
    from utuple.demo.showing import show

    outcome = run(secure=secure)
    if outcome is None:
        raise typer.Exit(INTERRUPTED)
    if json:
        print_json(outcome.summary())
    else:
        show(outcome)
    raise typer.Exit(0 if outcome.is_good else FAILED)


app.command()(told(demo))
harness.add_to(app)
app.add_typer(plan, name="plan")
app.add_typer(elastic, name="elastic")
