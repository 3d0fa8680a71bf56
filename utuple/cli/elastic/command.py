"""The commands of `utuple elastic`."""

from __future__ import annotations

import typer

from utuple.cli.elastic.plan import plan
from utuple.cli.elastic.simulate import simulate
from utuple.cli.elastic.status import status
from utuple.cli.outcome import told

elastic = typer.Typer(
    help="Elasticity: as many servers as the load needs, on machines that are just enough.",
    no_args_is_help=True,
)
for _command in (status, plan, simulate):
    elastic.command()(told(_command))
