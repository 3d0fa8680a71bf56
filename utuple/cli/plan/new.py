"""`utuple plan new`: a scenario to begin with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from utuple.errors import InvalidInput


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="Where to write it.")],
    force: Annotated[bool, typer.Option("--force", help="Also over an existing file.")] = False,
) -> None:
    """Write a commented scenario for `utuple plan sweep`."""
    from ops_sim.operation.scenario import template

    if file.exists() and not force:
        raise InvalidInput("FILE", str(file), "exists already; --force writes over it")
    try:
        file.write_text(template(datetime.now(UTC).date()), encoding="utf-8")
    except OSError as error:
        raise InvalidInput("FILE", str(file), f"cannot be written: {error.strerror}") from None
    typer.echo(f"{file} is written. Change it, then: utuple plan sweep {file}")
