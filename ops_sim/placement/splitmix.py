"""Numbers that look random and follow from a seed alone, whatever the order or place they are drawn in. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


def words(seed: int, stream: int, count: int) -> Words:
    """`count` words of 64 bits: splitmix64 over a counter, one stream for each purpose."""
    with np.errstate(over="ignore"):
        start = _mixed(np.array([seed & 0xFFFF_FFFF_FFFF_FFFF], np.uint64))
        start = _mixed(start + np.uint64(stream & 0xFFFF_FFFF_FFFF_FFFF) * _STEP)
        return _mixed(start + np.arange(1, count + 1, dtype=np.uint64) * _STEP)


def unit(seed: int, stream: int, count: int) -> Floats:
    """Numbers in [0, 1)."""
    return (words(seed, stream, count) >> np.uint64(11)).astype(np.float64) * _UNIT


def _mixed(values: Words) -> Words:
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))
