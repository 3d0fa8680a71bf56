"""What a report is: an answer, key figures, plots as plain data, assumptions and tables. Pure.

Nothing here knows HTML or a drawing library: the page for a browser and the page for mail show the same value, and
`utuple plan compare` reads it back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from utuple.errors import InvalidInput
from utuple.model.settings import no_duplicates

HUES = 8
"""Colours of the palette: renderers have so many. Two series of one hue are the same thing in two forms."""
RECOMMENDED_HUE = 7
"""The hue of what is recommended or ordered, in every plot."""


class Unit(StrEnum):
    NUMBER = "number"
    SHARE = "share"
    DAY = "day"
    SECONDS = "seconds"
    BYTES = "bytes"
    TEXT = "text"


class Shape(StrEnum):
    LINE = "line"
    STEPS = "steps"
    MARKERS = "markers"
    STARS = "stars"
    """Markers that stand out, with their labels written beside them."""
    BARS = "bars"
    BAND = "band"
    """The area between `low` and `y`."""


X = float | str
"""A number, a date (2027-01-31) or a category."""
Row = Mapping[str, Any]
Rows = Sequence[Row]
"""Rows of a table."""


def values(rows: Rows, column: str) -> tuple[Any, ...]:
    return tuple(row[column] for row in rows)


@dataclass(frozen=True, slots=True)
class Axis:
    title: str
    unit: Unit = Unit.NUMBER
    log: bool = False
    from_zero: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    x: tuple[X, ...]
    y: tuple[float | None, ...]
    """None is a gap."""
    shape: Shape = Shape.LINE
    low: tuple[float | None, ...] = ()
    labels: tuple[str, ...] = ()
    """What a point says beside its numbers."""
    hue: int = 0
    dashed: bool = False
    right: bool = False
    """It is drawn on the second axis, at the right."""

    def __post_init__(self) -> None:
        for name, values in (("y", self.y), ("low", self.low), ("labels", self.labels)):
            optional = name != "y" and (name != "low" or self.shape is not Shape.BAND)
            if len(values) != len(self.x) and not (optional and not values):
                rule = f"must have one entry for each of the {len(self.x)} of x"
                raise InvalidInput(f"series.{name}", self.name, rule)
        numbers = (v for v in (*self.x, *self.y, *self.low) if isinstance(v, int | float))
        if not all(map(math.isfinite, numbers)):
            raise InvalidInput("series", self.name, "must have finite numbers; a gap is None")
        if not 0 <= self.hue < HUES:
            raise InvalidInput("series.hue", self.hue, f"must be 0 to {HUES - 1}")

    @classmethod
    def of(cls, rows: Rows, name: str, x: str, y: str, **look: Any) -> Series:
        """Two columns of a table."""
        return cls(name, values(rows, x), values(rows, y), **look)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A line across the plot."""

    value: float
    label: str
    hue: int = 6


@dataclass(frozen=True, slots=True)
class Plot:
    name: str
    """An identifier: of the element in the page, and of the same plot in another report."""
    title: str
    caption: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    right: Axis | None = None
    thresholds: tuple[Threshold, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.replace("-", "").isalnum():
            raise InvalidInput("plot.name", self.name, "must be letters, digits and hyphens")
        if not any(series.x for series in self.series):
            raise InvalidInput("plot.series", self.name, "a plot must show something")
        if self.right is None and any(series.right for series in self.series):
            raise InvalidInput("plot.right", self.name, "a series is on a second axis, not given")


@dataclass(frozen=True, slots=True)
class KeyFigure:
    name: str
    title: str
    value: float | str
    unit: Unit = Unit.NUMBER
    note: str = ""


@dataclass(frozen=True, slots=True)
class Assumption:
    name: str
    value: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    title: str
    unit: Unit = Unit.NUMBER

    @classmethod
    def number(cls, name: str, title: str = "") -> Column:
        return cls(name, title or name)

    @classmethod
    def text(cls, name: str, title: str = "") -> Column:
        return cls(name, title or name, Unit.TEXT)

    @classmethod
    def share(cls, name: str, title: str = "") -> Column:
        return cls(name, title or name, Unit.SHARE)

    @classmethod
    def day(cls, name: str, title: str = "") -> Column:
        return cls(name, title or name, Unit.DAY)


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    """The name of its files beside the page."""
    title: str
    data: pa.Table
    columns: tuple[Column, ...]
    """The columns shown in the page; the files have all."""
    note: str = ""
    marked: tuple[int, ...] = ()
    """Rows that stand out."""

    def __post_init__(self) -> None:
        if missing := {column.name for column in self.columns} - set(self.data.column_names):
            raise InvalidInput("table.columns", sorted(missing)[0], f"is not in {self.name}")


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    text: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    kind: str
    """The command that made it: paper, sweep, ..."""
    title: str
    answer: str
    """One sentence that can be acted on."""
    reason: str
    figures: tuple[KeyFigure, ...]
    sections: tuple[Section, ...]
    assumptions: tuple[Assumption, ...]

    def __post_init__(self) -> None:
        no_duplicates("report.plot", [plot.name for plot in self.plots])
        no_duplicates("report.table", [table.name for table in self.tables])
        no_duplicates("report.figure", [figure.name for figure in self.figures])

    @property
    def plots(self) -> tuple[Plot, ...]:
        return tuple(plot for section in self.sections for plot in section.plots)

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for section in self.sections for table in section.tables)
