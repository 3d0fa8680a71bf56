"""What a family's templates ask, and what its rows say, as numbers. Pure.

Each template is a box of half-open spans, one a dimension. A dimension is a number of the metadata (latitude, longitude,
time), a number in the data, or a text, bool, null or bytes in the data, which is numbered by the templates that ask for it
to be equal. `Dimensions.box` says a template's box, and whether the box is all it asks: if not, whoever meets the box is
judged by the template itself. `FamilyRows` are the rows of one family in a batch, as points in the same dimensions.

A value that is not there is minus infinity: only a template that asks nothing of a dimension begins so low.
Whole numbers beyond 2^53 round on their way to a double. Rounding is monotonic, so spans that end below that
are exact for every value; others are made generous, and their template has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nextafter
from operator import itemgetter
from sys import float_info
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from utuple.model.area import Area, Box, Circle
from utuple.model.columns import Columns
from utuple.model.condition import DataCondition, Equal, OneOf, Present, Range
from utuple.model.utuple import Exact, Template, UTuple
from utuple.model.value import Value, decode_all, is_number
from utuple.server.matching.kernels import Floats, Ints

MAX_DIMENSIONS = 12
"""Further fields are left to the template itself; each dimension costs buckets x templates bits."""
NOWHERE = -inf
LOWEST = -float_info.max
_EXACT = 2**53
_PLAIN = frozenset((int, float))
_UNNUMBERED = frozenset((int, float, list, dict))
_NUMBERED = frozenset((str, bool, bytes, type(None)))

LAT, LON, TIME, NUMBER, EQUAL = "lat", "lon", "time", "number", "equal"
Key = tuple[str, str]
"""Kind of dimension, and the name of its field in the data."""


class ValueCodes:
    """Values that templates ask to be equal, numbered; a number is not used again."""

    def __init__(self) -> None:
        self.of: dict[Value, int] = {}
        self._asked: dict[Value, int] = {}
        self._next = 0

    def ask(self, value: Value) -> int:
        code = self.of.get(value)
        if code is None:
            code = self.of[value] = self._next
            self._next += 1
        self._asked[value] = self._asked.get(value, 0) + 1
        return code

    def forget(self, value: Value) -> None:
        self._asked[value] -= 1
        if not self._asked[value]:
            del self.of[value], self._asked[value]


class Dimensions:
    """Of one family, in the order they were first asked for."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.codes: dict[str, ValueCodes] = {}
        self._at: dict[Key, int] = {}
        """Where the span of each begins in a box."""
        self._numbers: dict[str, int] = {}
        """The same, of numbers in the data."""
        self._nothing: list[float] = []

    def __len__(self) -> int:
        return len(self.keys)

    def box(self, utuple: UTuple) -> tuple[list[float], bool]:
        """(low, high, low, high, ...), and whether the template must still be asked."""
        template, where = utuple.metadata, utuple.where
        assert isinstance(template, Template)
        box = self._nothing.copy()
        is_open = type(template.address) is not Present
        if template.since_us is not None or template.until_us is not None:
            is_open |= self._ask((TIME, ""), box, template.since_us, template.until_us)
        if template.area is not None:
            is_open |= self._ask_area(box, template.area)
        if where:
            is_open |= self._ask_data(box, where)
        return box, is_open

    def forget(self, utuple: UTuple) -> None:
        """The template is gone: values that only it asked for need no number any more."""
        if self.codes and utuple.where:
            for name, wanted in utuple.where.items():
                if name in self.codes and _is_numbered(wanted):
                    self.codes[name].forget(wanted.value)

    def _ask_data(self, box: list[float], where: Mapping[str, DataCondition]) -> bool:
        numbers = self._numbers
        is_open = False
        for name, wanted in where.items():
            if type(wanted) is Range:
                low, high = wanted.low, wanted.high
                at = numbers.get(name)
                if (  # the most frequent, in a hurry
                    at is not None
                    and type(low) in _PLAIN
                    and type(high) in _PLAIN
                    and -_EXACT < low < high < _EXACT  # type: ignore[operator]
                ):
                    box[at] = low  # type: ignore[assignment]
                    box[at + 1] = high  # type: ignore[assignment]
                    continue
            is_open |= self._ask_field(box, name, wanted)
        return is_open

    def _ask_field(self, box: list[float], name: str, wanted: DataCondition) -> bool:
        key = (NUMBER, name)
        match wanted:
            case Range(low, high) if not isinstance(low, str) and not isinstance(high, str):
                return self._ask(key, box, low, high)
            case Equal(value) if is_number(value):
                return self._ask(key, box, value, nextafter(value, inf))
            case OneOf(values) if all(map(is_number, values)):
                self._ask(key, box, min(values), nextafter(max(values), inf))
                return True
            case _ if _is_numbered(wanted) and self._place((EQUAL, name), box) is not None:
                code = self.codes[name].ask(wanted.value)
                return self._ask((EQUAL, name), box, code, code + 1)
        return True

    def _ask_area(self, box: list[float], area: Area) -> bool:
        """A circle is asked again inside its box, a box across the antimeridian inside its latitudes."""
        shape = area if isinstance(area, Box) else area.bounding_box()
        is_open = isinstance(area, Circle) or shape.crosses_antimeridian
        west, east = (-180.0, 180.0) if shape.crosses_antimeridian else (shape.west, shape.east)
        is_open |= self._ask((LAT, ""), box, shape.south, nextafter(shape.north, inf))
        is_open |= self._ask((LON, ""), box, west, nextafter(east, inf))
        return is_open

    def _ask(self, key: Key, box: list[float], low: float | None, high: float | None) -> bool:
        at = self._place(key, box)
        if at is None:
            return True
        is_open = False
        if low is not None and not -_EXACT < low < _EXACT:
            low, is_open = max(LOWEST, float(low)), True
        if high is not None and not -_EXACT < high < _EXACT:
            high, is_open = nextafter(float(high), inf), True
        box[at] = LOWEST if low is None else low
        box[at + 1] = inf if high is None else high
        return is_open

    def _place(self, key: Key, box: list[float]) -> int | None:
        """Where its span begins, in a new dimension if need be; None if there are too many."""
        at = self._at.get(key)
        if at is None:
            if len(self.keys) == MAX_DIMENSIONS:
                return None
            at = self._at[key] = 2 * len(self.keys)
            self.keys.append(key)
            self._nothing += (NOWHERE, inf)
            if key[0] == NUMBER:
                self._numbers[key[1]] = at
            elif key[0] == EQUAL:
                self.codes[key[1]] = ValueCodes()
        if len(box) <= at:
            box += self._nothing[len(box) :]
        return at


def _is_numbered(wanted: DataCondition) -> TypeGuard[Equal]:
    return type(wanted) is Equal and type(wanted.value) in _NUMBERED


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

    def values(self, dimensions: Dimensions, asked: NDArray[np.int64]) -> Floats:
        """One line a row, one column a dimension; those of which nothing is asked stay empty."""
        values = np.empty((len(self.rows), len(dimensions)))
        values.fill(NOWHERE)
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
