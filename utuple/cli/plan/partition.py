"""`utuple plan partition`: what it gains to partition a hot key's EFs by dimension (paper 002, BlueDove)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import Json, print_json

if TYPE_CHECKING:
    from ops_sim.partition.study import Study


def partition(
    efs: Annotated[int, typer.Option(help="EFs of the hot key.")] = 40_000,
    dimensions: Annotated[int, typer.Option(help="How many each constrains, of length 1000.")] = 4,
    width: Annotated[float, typer.Option(help="Of the range each asks for.")] = 250.0,
    deviation: Annotated[
        float, typer.Option(help="Of where ranges begin around their hot spot.")
    ] = 250.0,
    few: Annotated[int, typer.Option(min=2, help="Members, in the smaller comparison.")] = 5,
    many: Annotated[int, typer.Option(min=2, help="Members, in the larger one.")] = 20,
    seed: Annotated[int, typer.Option(min=0)] = 2,
    json: Json = False,
) -> None:
    """How much faster members are that keep the EFs of their segments only, instead of all of them.

    Without options the experiments of paper 002 (figures 6, 7, 8 and 11a), beside what it prints: the highest rate of EAs,
    where a member scans the EFs it keeps.
    """
    from ops_sim.partition.study import study
    from ops_sim.partition.workload import Workload

    found = study(Workload(efs, dimensions, width, deviation, seed), few, many)
    if json:
        print_json(_told(found))
    else:
        _show(found)


def _told(found: Study) -> dict[str, object]:
    gains = [
        {"name": gain.name, "members": gain.members, "gain": gain.value, "paper": gain.paper}
        for gain in found.gains
    ]
    return {"gains": gains, "load_deviation": found.deviation, "paper_load_deviation": 0.14}


def _show(found: Study) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("gain of the adaptive choice", "members", "here", "the paper prints")
    for column in table.columns[1:]:
        column.justify = "right"
    for gain in found.gains:
        paper = "" if gain.paper is None else f"{gain.paper:g}"
        table.add_row(gain.name, str(gain.members), f"{gain.value:.2f}", paper)
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print(
        f"Loads of the members deviate by {found.deviation:.2g} of their mean (paper: 0.14)."
    )
    console.print(
        "14 and 67 times over replication cannot be had with ranges a quarter as long as the dimension: each member keeps "
        "at least that share of the EFs. Predicates that ask for one point come near it."
    )
