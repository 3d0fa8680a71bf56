"""The commands of `utuple plan`. What is heavy is imported inside them."""

from __future__ import annotations

import typer

from utuple.cli.outcome import told
from utuple.cli.plan.calibrate import calibrate
from utuple.cli.plan.compare import compare
from utuple.cli.plan.dropping import dropping
from utuple.cli.plan.estimate import estimate
from utuple.cli.plan.forecast import forecast
from utuple.cli.plan.new import new
from utuple.cli.plan.paper import paper
from utuple.cli.plan.partition import partition
from utuple.cli.plan.placement import placement
from utuple.cli.plan.sweep import sweep

plan = typer.Typer(
    help="Capacity planning: how many servers to buy, when, at what risk.", no_args_is_help=True
)
for _command in (
    paper,
    calibrate,
    estimate,
    new,
    sweep,
    placement,
    forecast,
    dropping,
    partition,
    compare,
):
    plan.command()(told(_command))
