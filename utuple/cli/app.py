"""The commands of `utuple`. What is heavy is imported inside them, so that --help is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from utuple.cli import life
from utuple.cli.outcome import told

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


for command in (life.up, life.down):
    app.command()(told(command))
