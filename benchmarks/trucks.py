"""Application A of the paper (section 4.1.2, table 2): sensors that sense the quantity of a truckload, and
applications that each watch a district. Districts tile the map, so that every EA matches exactly one EF.
Pure: what is drawn depends on the seed alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

from utuple.model.area import Box
from utuple.model.utuple import Family

SUBJECT, TYPE = "truck", "load"
FAMILY = Family(SUBJECT, TYPE)
LIFETIME_S = 7 * 86_400
"""50 EAs a day and 350 kept of each device: a week."""
TRUCKS = 100_000
_SOUTH, _WEST, _NORTH, _EAST = 30.0, 130.0, 45.0, 145.0


def events(count: int, seed: int, type_: str = TYPE) -> list[dict[str, Any]]:
    """Readings as a gateway has them in its hands: arguments of `emit`."""
    dice = Random(seed)
    return [
        {
            "subject": SUBJECT,
            "type": type_,
            "address": f"truck-{dice.randrange(TRUCKS)}",
            "position": (dice.uniform(_SOUTH, _NORTH), dice.uniform(_WEST, _EAST)),
            "data": {"kg": dice.randrange(20_000)},
        }
        for _ in range(count)
    ]


def districts(count: int) -> Iterator[Box]:
    """So many boxes that tile the map: as square as can be."""
    rows = max(n for n in range(1, int(count**0.5) + 1) if count % n == 0)
    columns = count // rows
    lats = [_SOUTH + (_NORTH - _SOUTH) * n / rows for n in range(rows + 1)]
    lons = [_WEST + (_EAST - _WEST) * n / columns for n in range(columns + 1)]
    for south, north in pairwise(lats):
        for west, east in pairwise(lons):
            yield Box(south, west, north, east)
