"""BlueDove's workload (paper 002, section IV-A) as uTuples, and EFs for one address each.

Four dimensions of length 1000. An EF asks for 250 of each; where, follows a normal distribution of standard
deviation 250, cropped to the dimension, whose middle (the hot spot) lies elsewhere in each dimension. EAs are
spread evenly. One in 256 EFs meets an EA.

    NUMBERS    all four are numbers in the data: every EA's JSON is decoded
    METADATA   latitude, longitude, time, and one number in the data
    ADDRESSES  each EF is for one device; EAs are of devices that all have one
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from utuple.model.area import Box
from utuple.model.columns import Columns, columns_of
from utuple.model.condition import Equal, Range
from utuple.model.utuple import Exact, Family, Template, UTuple

FAMILY = Family("truck", "load")
NAMES = ("a", "b", "c", "d")
_LENGTH, _WIDTH, _SIGMA = 1000.0, 250.0, 250.0
_HOT_SPOTS = (125.0, 375.0, 625.0, 875.0)
"""Evenly along the dimension, as in the paper."""
_LIFETIME_S = 86_400.0
_CHUNK = 10_000


class Kind(Enum):
    NUMBERS = "numbers"
    METADATA = "metadata"
    ADDRESSES = "addresses"


def formals(kind: Kind, count: int, seed: int) -> Iterator[UTuple]:
    dice = np.random.default_rng(seed)
    for first in range(0, count, _CHUNK):
        some = min(_CHUNK, count - first)
        for at, lows in enumerate(_lows(some, dice).tolist(), first):
            yield _formal(kind, at, lows)


def batch(kind: Kind, rows: int, devices: int, seed: int) -> Columns:
    """EAs, of so many devices."""
    dice = np.random.default_rng(seed)
    points = dice.uniform(0, _LENGTH, (rows, len(NAMES))).tolist()
    of = dice.integers(0, devices, rows).tolist()
    return columns_of(
        _event(kind, row, point, device)
        for row, (point, device) in enumerate(zip(points, of, strict=True))
    )


def _lows(count: int, dice: np.random.Generator) -> NDArray[np.float64]:
    columns = []
    for hot in _HOT_SPOTS:
        middles = np.empty(0)
        while len(middles) < count:
            more = dice.normal(hot, _SIGMA, 2 * count)
            middles = np.concatenate([middles, more[(more >= 0) & (more <= _LENGTH)]])
        columns.append(np.clip(middles[:count] - _WIDTH / 2, 0, _LENGTH - _WIDTH))
    return np.stack(columns, axis=1)


def _formal(kind: Kind, number: int, lows: list[float]) -> UTuple:
    metadata, where = Template(), {}
    if kind is Kind.ADDRESSES:
        metadata = Template(Equal(f"truck-{number}"))
    elif kind is Kind.METADATA:
        south, west, since_us, low = _placed(lows)
        north, east, until_us, high = _placed([low + _WIDTH for low in lows])
        metadata = Template(
            since_us=since_us, until_us=until_us, area=Box(south, west, north, east)
        )
        where = {NAMES[3]: Range(low, high)}
    else:
        where = {name: Range(low, low + _WIDTH) for name, low in zip(NAMES, lows, strict=True)}
    id_ = number.to_bytes(16, "big")
    return UTuple(id_, FAMILY, metadata, None, where, _LIFETIME_S, "reader")


def _event(kind: Kind, row: int, point: list[float], device: int) -> UTuple:
    address = f"truck-{device}"
    exact, data = Exact(address, 0), {}
    if kind is Kind.METADATA:
        lat, lon, time_us, number = _placed(point)
        exact, data = Exact(address, time_us, (lat, lon)), {NAMES[3]: number}
    elif kind is Kind.NUMBERS:
        data = dict(zip(NAMES, point, strict=True))
    return UTuple(row.to_bytes(16, "big"), FAMILY, exact, data, None, _LIFETIME_S)


def _placed(point: list[float]) -> tuple[float, float, int, float]:
    """A point of the four dimensions as latitude, longitude, time and number."""
    lat, lon = point[0] / _LENGTH * 180 - 90, point[1] / _LENGTH * 360 - 180
    return lat, lon, round(point[2] * 1_000_000), point[3]
