"""`utuple elastic simulate`: the live controller on simulated machines, under the load of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.options import Json, print_json
from utuple.cli.plan.printing import print_cautions, print_table
from utuple.errors import InvalidInput

if TYPE_CHECKING:
    from ops_sim.elastic.cost import Bill
    from ops_sim.elastic.simulation import Moment, Run

PAPER = "paper"
_ROWS_MAX = 40
"""Of happenings that are printed; --json has them all."""

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="An elastic.toml with a table [simulation]; or `paper`: the runs of the paper on just-enough elasticity.",
    ),
]


def simulate(file: File, json: Json = False) -> None:
    """Try a policy on a load, before it is let loose: what the controller decides, minute by minute, and what it costs.

    It is the very controller that `utuple up --elastic` runs. Machines that are just enough are compared with
    machines of the fixed sizes in [[simulation.price.type]].
    """
    from ops_sim.elastic.paper_runs import paper_texts

    texts = paper_texts() if file == PAPER else {file: read_text(Path(file))}
    results = [_shown(name, text, json) for name, text in texts.items()]
    if json:
        print_json(results if file == PAPER else results[0])


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        rule = "there is no such file; docs/elasticity.md has one to begin with"
        raise InvalidInput("FILE", str(path), rule) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("FILE", str(path), f"cannot be read: {error}") from None


def _shown(name: str, text: str, json: bool) -> dict[str, Any]:
    from load_monitor.elastic.settings import settings_of
    from ops_sim.elastic.cost import compared
    from ops_sim.elastic.scenario import scenario_of

    settings = settings_of(text, name)
    scenario = scenario_of(settings.simulation)
    runs = list(compared(settings.policy, scenario))
    if not json:
        _print(scenario.durations.name, runs)
    return _result(scenario.durations.name, runs)


def _result(name: str, runs: list[tuple[Run, Bill]]) -> dict[str, Any]:
    from dataclasses import asdict

    run = runs[0][0]
    return {
        "name": name,
        "machines": [asdict(machine) for machine in run.machines],
        "happenings": [asdict(happening) for happening in run.happenings],
        "warnings": [asdict(warning) for warning in run.warnings],
        "minutes": [asdict(moment) for moment in _minutes(run)],
        "costs": [asdict(bill) for _, bill in runs],
    }


def _minutes(run: Run) -> list[Moment]:
    """One look of each minute: its first."""
    found: dict[int, Moment] = {}
    for moment in run.moments:
        found.setdefault(int(moment.minute), moment)
    return list(found.values())


def _print(name: str, runs: list[tuple[Run, Bill]]) -> None:
    run = runs[0][0]
    typer.echo(f"{name[:1].upper()}{name[1:]}")
    for happening in run.happenings[:_ROWS_MAX]:
        typer.echo(f"  {happening.minute:6.1f} min  {happening.what}: {happening.why}")
    if len(run.happenings) > _ROWS_MAX:
        typer.echo(f"  … {len(run.happenings) - _ROWS_MAX} more; --json has them all")
    print_cautions(f"  {warning.minute:6.1f} min  {warning.why}" for warning in run.warnings)
    print_table(
        "",
        ("machines", "made", "MB", "machine hours", "cost", "servers at most", "overloaded min"),
        (
            (
                bill.machines,
                str(bill.made),
                f"{bill.memory_mb:,.0f}",
                f"{bill.machine_hours:.2f}",
                f"{bill.cost:.4f}",
                str(bill.servers_most),
                f"{bill.overload_minutes:.1f}",
            )
            for _, bill in runs
        ),
    )
