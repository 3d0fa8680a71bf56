"""The options that several commands share, and how commands speak."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from utuple.cluster.address import check_reachable
from utuple.errors import InvalidInput
from utuple.local.layout import DEFAULT_PORT, HOST

At = Annotated[
    str,
    typer.Option(
        "--at",
        envvar="UTUPLE_AT",
        metavar="HOST:PORT",
        help="An assignment manager; several may be given, with commas between them.",
    ),
]
AT_DEFAULT = f"{HOST}:{DEFAULT_PORT}"

Credentials = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        envvar="UTUPLE_CREDENTIALS",
        metavar="FILE",
        help="Who you are on a secured cluster: NAME.creds, as `utuple grant` writes it.",
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        envvar="UTUPLE_DATA",
        show_default="~/.local/share/utuple",
        help="The data folder of the cluster.",
    ),
]


def addresses(at: str) -> list[str]:
    """`--at` as addresses."""
    found = [part.strip() for part in at.split(",") if part.strip()]
    for address in found:
        check_reachable("--at", address)
    if not found:
        raise InvalidInput("--at", at, "must name at least one HOST:PORT")
    return found


def print_json(value: object) -> None:
    """One object on one line."""
    print(orjson.dumps(value).decode(), flush=True)


def print_json_block(value: object) -> None:
    """For people who read JSON, too."""
    print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode(), flush=True)
