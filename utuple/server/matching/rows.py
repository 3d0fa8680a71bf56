"""The rows of one family in a batch, as its dimensions see them, and one by one as `matches` does. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from utuple.model.columns import Columns
from utuple.model.utuple import Exact
from utuple.model.value import Value, decode_all, is_number
from utuple.server.matching.boxes import (
    EQUAL,
    LAT,
    LON,
    NOWHERE,
    NUMBER,
    TIME,
    Dimensions,
    ValueCodes,
)
from utuple.server.matching.kernels import Floats, Ints

_PLAIN = frozenset((int, float))
_UNNUMBERED = frozenset((int, float, list, dict))


class FamilyRows:
    """Data is decoded when something is first asked of it, and then for all rows at once."""

    def __init__(self, columns: Columns, rows: NDArray[np.intp]) -> None:
        self._columns = columns
        self.rows = rows
        self._is_whole = len(rows) == len(columns)
        self._data: list[dict[str, Value]] | None = None
        self._exact: dict[int, Exact] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, at: Ints) -> Ints:
        """Their numbers in the batch."""
        return at if self._is_whole else self.rows[at].astype(np.int32)

    def addresses(self) -> Sequence[str]:
        addresses = self._columns.addresses
        return addresses if self._is_whole else [addresses[row] for row in self.rows.tolist()]

    def data(self) -> list[dict[str, Value]]:
        if self._data is None:
            payloads = self._columns.payloads
            if not self._is_whole:
                payloads = [payloads[row] for row in self.rows.tolist()]
            self._data = decode_all(payloads)
        return self._data

    def exact(self, at: int) -> Exact:
        exact = self._exact.get(at)
        if exact is None:
            columns, row = self._columns, int(self.rows[at])
            exact = Exact(columns.addresses[row], columns.times_us[row], columns.position_at(row))
            self._exact[at] = exact
        return exact

    def values(self, dimensions: Dimensions, asked: NDArray[np.bool_]) -> Floats:
        """One line a row, one column a dimension; those of which nothing is asked stay empty."""
        values = np.full((len(self.rows), len(dimensions)), NOWHERE)
        for at, key in enumerate(dimensions.keys):
            if asked[at]:
                values[:, at] = self._column(*key, dimensions)
        return values

    def _column(self, kind: str, name: str, dimensions: Dimensions) -> Floats:
        columns = self._columns
        if kind == TIME:
            times = np.frombuffer(columns.times_us, dtype=np.int64)
            return times[self.rows].astype(np.float64)
        if kind in (LAT, LON):
            degrees = np.frombuffer(columns.lats if kind == LAT else columns.lons)
            return np.where(np.isnan(degrees), NOWHERE, degrees)[self.rows]
        if kind == NUMBER:
            return _numbers(self._field(name))
        assert kind == EQUAL
        return _codes(self._field(name), dimensions.codes[name])

    def _field(self, name: str) -> list[Value]:
        try:
            return list(map(itemgetter(name), self.data()))
        except KeyError:
            return [data.get(name, NOWHERE) for data in self.data()]


def _numbers(found: list[Value]) -> Floats:
    if not _PLAIN.issuperset(map(type, found)):
        found = [value if is_number(value) else NOWHERE for value in found]
    return np.array(found, dtype=np.float64)


def _codes(found: list[Value], codes: ValueCodes) -> Floats:
    """A number is nowhere: 1 would be found where True is."""
    of = codes.of
    return np.array(
        [NOWHERE if type(value) in _UNNUMBERED else of.get(value, NOWHERE) for value in found],
        dtype=np.float64,
    )
