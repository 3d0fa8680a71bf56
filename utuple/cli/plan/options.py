"""Options that the commands of `utuple plan` share."""

from __future__ import annotations

from typing import Annotated

import typer

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
Cost = Annotated[
    str,
    typer.Option("--cost", metavar="NAME|FILE", help="paper, calibrated, or a cost.json."),
]
