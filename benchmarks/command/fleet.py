"""The devices: air conditioners, one a room. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from random import Random
from typing import Any

from utuple.client.sending.rows import ids_of
from utuple.model.columns import MICROSECONDS, NO_POSITION, Columns
from utuple.model.condition import TypeIs, Where, encode_where
from utuple.model.utuple import Family

SUBJECT, TYPE = "aircon", "power"
FAMILY = Family(SUBJECT, TYPE)
WHERE: Where = {"on": TypeIs("bool")}
READER = "city"
LIFETIME_S = 86_400
_ID_BITS = 74


def room(number: int) -> str:
    return f"room-{number}"


def devices(numbers: Sequence[int], now_us: int, seed: int) -> Columns:
    """CFs of these rooms, as they are registered in bulk."""
    count = len(numbers)
    nowhere = array("d", [NO_POSITION]) * count
    return Columns(
        families=(FAMILY,),
        family=array("I", bytes(4 * count)),
        ids=ids_of(now_us, Random(seed).getrandbits(_ID_BITS), count),
        times_us=array("q", [now_us]) * count,
        lats=nowhere,
        lons=nowhere,
        lifetimes_us=array("q", [LIFETIME_S * MICROSECONDS]) * count,
        addresses=list(map(room, numbers)),
        payloads=[encode_where(WHERE)] * count,
        readers=[READER] * count,
    )


def orders(count: int, rooms: int, seed: int) -> list[dict[str, Any]]:
    """Commands to rooms drawn from the first `rooms`: arguments of `command`."""
    dice = Random(seed)
    return [
        {
            "subject": SUBJECT,
            "type": TYPE,
            "address": room(dice.randrange(rooms)),
            "data": {"on": dice.random() < 0.5},
        }
        for _ in range(count)
    ]
