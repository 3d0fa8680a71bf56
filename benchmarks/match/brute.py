"""The yardsticks of `match`: no index, every EF is compared with every EA. What comes in is the same (EAs as columns, their
JSON decoded in the time that counts); what comes out are pairs of row and EF, which the index still makes delivery lists of.

    in turn      as one writes it first: a loop over the EFs that leaves one at the first number outside, compiled by numba, as
                 the index is
    at once      NumPy's comparisons of all EFs' bounds with one EA's numbers, in vector instructions
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.match.workload import NAMES
from utuple.model.columns import Columns
from utuple.model.condition import Range
from utuple.model.utuple import UTuple
from utuple.server.matching.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class Brute:
    def __init__(self, templates: Sequence[UTuple], rows: int) -> None:
        """For EFs that ask for a range of each number, and batches of so many EAs at most."""
        self._boxes = np.array([_box(template) for template in templates])
        self._lows = np.ascontiguousarray(self._boxes[:, 0::2].T)
        self._highs = np.ascontiguousarray(self._boxes[:, 1::2].T)
        self._pairs = np.empty((rows * len(templates) // 16, 2), dtype=np.int32)
        """Room for one EF in sixteen: one in 256 meets an EA."""
        self.in_turn(Columns())  # compiled before it is measured

    def in_turn(self, columns: Columns) -> int:
        """How many pairs."""
        return int(_in_turn(self._boxes, _values(columns), self._pairs))

    def at_once(self, columns: Columns) -> int:
        return sum(len(self._met(point)) for point in _values(columns))

    def _met(self, point: Floats) -> NDArray[np.intp]:
        inside = np.ones(len(self._boxes), dtype=np.bool_)
        for low, high, number in zip(self._lows, self._highs, point, strict=True):
            inside &= low <= number
            inside &= number < high
        return np.flatnonzero(inside)


@compiled
def _in_turn(boxes: Floats, values: Floats, pairs: Ints) -> int:
    count = 0
    for row in range(len(values)):
        for at in range(len(boxes)):
            inside = True
            for d in range(values.shape[1]):
                number = values[row, d]
                if number < boxes[at, 2 * d] or number >= boxes[at, 2 * d + 1]:
                    inside = False
                    break
            if inside:
                pairs[count, 0] = row
                pairs[count, 1] = at
                count += 1
    return count


def _values(columns: Columns) -> Floats:
    decoded = map(orjson.loads, columns.payloads)
    rows = [[data[name] for name in NAMES] for data in decoded]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(NAMES))


def _box(template: UTuple) -> list[float]:
    assert template.where is not None
    bounds: list[float] = []
    for name in NAMES:
        asked = template.where[name]
        assert isinstance(asked, Range)
        assert isinstance(asked.low, float) and isinstance(asked.high, float)
        bounds += (asked.low, asked.high)
    return bounds
