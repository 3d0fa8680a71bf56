"""NumPy's scalars as the plain values they mean.

Readings often come out of NumPy, and `np.float32(0.5)` is meant as 0.5. NumPy itself is never imported here: the bare
install does not have it. What it calls a scalar is known by name; arrays, dates and complex numbers stay what they
are, and are refused by whoever checks them.
"""

from __future__ import annotations

from typing import Any

_KINDS = "biufSU"
"""Of NumPy's types: bool, integers, floats, bytes and text."""
_PLAIN = (bool, int, float, str, bytes)


def plain_scalar(value: Any) -> Any:
    """The plain value of a NumPy scalar, and of a float or text of a class derived from these; else the value itself."""
    kind = type(value)
    if kind in _PLAIN or value is None:
        return value
    if _is_numpy_scalar(kind):
        meant = value.item() if value.dtype.kind in _KINDS else value
        return meant if type(meant) in _PLAIN else value
    if isinstance(value, float):
        return float(value)
    return str.__str__(value) if isinstance(value, str) else value


def _is_numpy_scalar(kind: type) -> bool:
    return any((base.__module__, base.__name__) == ("numpy", "generic") for base in kind.__mro__)
