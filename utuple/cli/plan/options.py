"""Options that the commands of `utuple plan` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from utuple.errors import InvalidInput

Master = Annotated[
    str,
    typer.Option(
        "--master",
        metavar="MASTER",
        envvar="UTUPLE_SPARK_MASTER",
        help="Where Spark runs: local[N], local-cluster[N,cores,MB], spark://HOST:PORT.",
    ),
]
MASTER_DEFAULT = "local[*]"
ReportFolder = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="DIR",
        help="Write report.html, page.png, page.pdf and the tables as CSV and Parquet there.",
    ),
]
Cost = Annotated[
    str,
    typer.Option("--cost", metavar="NAME|FILE", help="paper, calibrated, or a cost.json."),
]


def make_folder(option: str, folder: Path | None) -> None:
    """Makes the folder before the work begins, so that one that cannot be written is refused at once."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = "must be a folder" if folder.exists() else f"cannot be made: {error.strerror}"
        raise InvalidInput(option, str(folder), rule) from None


def make_places(rows: Path | None, report: Path | None) -> None:
    """Makes the folders of --rows and --report."""
    if rows is not None:
        if rows.is_dir():
            raise InvalidInput("--rows", str(rows), "is a folder; must be a file")
        make_folder("--rows", rows.absolute().parent)
    make_folder("--report", report)
