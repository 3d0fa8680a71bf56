"""The commands of `utuple plan`. What is heavy is imported inside them."""

from __future__ import annotations

import typer

from utuple.cli.outcome import told
from utuple.cli.plan.paper import paper

plan = typer.Typer(
    help="Capacity planning: how many servers to buy, when, at what risk.", no_args_is_help=True
)
for _command in (paper,):
    plan.command()(told(_command))
