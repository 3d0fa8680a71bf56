"""Numbers, days and counts as people read them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal

from ops_sim.report.value import Unit

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def formatted(value: object, unit: Unit) -> str:
    """A value in its unit."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if unit is Unit.SHARE:
        return f"{value:.1%}".replace("%", " %")
    if unit is Unit.SECONDS:
        return _seconds(float(value))
    if unit is Unit.BYTES:
        return f"{_short(float(value), 'B')}"
    if unit is Unit.DAY:
        return f"{value:.0f}"
    return number(value)


def number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10 else plain(value, 3)


def plain(value: float, digits: int) -> str:
    """So many significant digits, and never an exponent: 0.00001 and not 1e-05."""
    return f"{Decimal(f'{value:.{digits}g}'):,f}"


def setting(value: object) -> str:
    """A setting as it was given, or near."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    return number(value) if abs(value) >= 1 else plain(value, 4)


def before(cautions: Iterable[str]) -> str:
    """Cautions as the beginning of a text."""
    return "".join(f"{caution} " for caution in cautions)


def _seconds(value: float) -> str:
    for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(value) * factor >= 1:
            return f"{plain(value * factor, 3)} {name}"
    return f"{plain(value * 1e9, 3)} ns" if value else "0 s"


def _short(value: float, name: str) -> str:
    for size, prefix in _SI:
        if abs(value) >= size:
            return f"{plain(value / size, 3)} {prefix}{name}"
    return f"{plain(value, 4)} {name}"


def count(many: int, one: str, several: str = "") -> str:
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def date_of(day: int, start: date) -> str:
    """Day 1 is the start."""
    return (start + timedelta(days=day - 1)).isoformat()


def listed(items: list[str]) -> str:
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"
