"""The options that make a template, for `watch`, `read` and `command`, and the arguments they become."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

Subject = Annotated[str, typer.Option("--subject", help="Kind of device, such as truck.")]
Type = Annotated[str, typer.Option("--type", help="Kind of data, such as load.")]
Addresses = Annotated[
    list[str] | None,
    typer.Option("--address", help="Only this device; may be given several times."),
]
Prefix = Annotated[
    str | None, typer.Option("--prefix", help="Only devices whose address begins so.")
]
Area = Annotated[
    str | None,
    typer.Option(
        "--area",
        help="'south,west,north,east', or 'lat,lon,radius' with the radius as 500m or 2km; edges included.",
    ),
]
Since = Annotated[
    str | None, typer.Option("--since", help="Not before: ISO 8601, or how long ago (15m, 1h, 2d).")
]
Until = Annotated[str | None, typer.Option("--until", help="Before (half-open), written likewise.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="'kg>=1000', 'kg>=1 kg<5', 'state=idle', 'state in idle,busy', 'on is bool', "
        "'kg exists', 'kg absent'; may be given several times.",
    ),
]


def place_of(
    addresses: list[str] | None,
    prefix: str | None,
    area: str | None,
    since: str | None,
    until: str | None,
) -> dict[str, Any]:
    """`address=`, `area=`, `since=` and `until=` of the SDK; what was not asked is left out."""
    from utuple.cli.verbs.parsing import parse_address, parse_area, parse_time

    now = datetime.now(UTC)
    asked: dict[str, Any] = {}
    if addresses or prefix is not None:
        asked["address"] = parse_address(addresses or (), prefix)
    if area is not None:
        asked["area"] = parse_area(area)
    if since is not None:
        asked["since"] = parse_time("--since", since, now)
    if until is not None:
        asked["until"] = parse_time("--until", until, now)
    return asked
