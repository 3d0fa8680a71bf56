"""`utuple bench` and `utuple chaos`: harnesses that live in the source checkout, in `benchmarks/`, and not in the wheel.

In a checkout the commands are added as they are there. A plain install has commands of the same names that say in one line
where they are, so that nobody who has read of them looks for them in vain.
"""

from __future__ import annotations

from collections.abc import Callable

import typer

from utuple.cli.outcome import told
from utuple.errors import UTupleError

_ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


class NeedsCheckout(UTupleError):
    """The harness is not part of an installed package."""


def add_to(app: typer.Typer) -> None:
    try:
        from benchmarks.commands import bench, chaos
    except ModuleNotFoundError as error:
        if not is_missing(error):
            raise
        for name, what in (("chaos", "Faults on a cluster"), ("bench", "Benchmarks")):
            said = f"{what}; only in a source checkout."
            app.command(name, help=said, context_settings=_ANYTHING)(told(_stand_in(name)))
        return
    app.command()(told(chaos))
    app.add_typer(bench, name="bench")


def is_missing(error: ModuleNotFoundError) -> bool:
    """Is it the harness that is not there, and not a part of its own that somebody has to install?"""
    return (error.name or "").partition(".")[0] == "benchmarks"


def needs_checkout(command: str) -> NeedsCheckout:
    return NeedsCheckout(
        f"`utuple {command}` lives in the source checkout, not in the installed package: clone the repository, run "
        f"`make venv` there, then `.venv/bin/utuple {command}`"
    )


def _stand_in(name: str) -> Callable[[], None]:
    def refuse() -> None:
        raise needs_checkout(name)

    return refuse
