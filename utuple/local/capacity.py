"""What the stores of a local cluster may grow to, as an operator says it: `200MB`, or `server-1=200MB`. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from utuple.errors import InvalidInput

OPTION = "--capacity"
EVERY = "*"
"""In place of a name: every server that has none of its own."""
LEAST_BYTES = 4_000_000
"""An empty store has its tables and indexes already."""
MOST_BYTES = 10**18
"""Of no use to anybody beyond it, and 64 bits hold it everywhere."""
_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")


def size_bytes(text: str) -> int:
    """Of `200MB`, `1.5 GiB` or a plain number of bytes."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in _UNITS:
        raise InvalidInput(OPTION, text, "must be a size such as 200MB, 1.5GiB or 140GB")
    size = min(
        float(found[1]) * _UNITS[found[2]], 2 * MOST_BYTES
    )  # also of more digits than a float can hold
    if size > MOST_BYTES:
        raise InvalidInput(OPTION, text, f"must be at most {MOST_BYTES // 10**12:,}TB")
    if size < LEAST_BYTES:
        rule = f"must be at least {LEAST_BYTES // 10**6}MB: an empty store takes some of it"
        raise InvalidInput(OPTION, text, rule)
    return round(size)


def capacities_of(given: Sequence[str], servers: Collection[str]) -> dict[str, int]:
    """By server, or EVERY. Each is said once."""
    found: dict[str, int] = {}
    for text in given:
        name, equals, size = text.rpartition("=")
        name = name.strip() if equals else EVERY
        if name != EVERY and name not in servers:
            raise InvalidInput(OPTION, text, f"must name one of {', '.join(sorted(servers))}")
        if name in found:
            raise InvalidInput(OPTION, text, "is given twice for the same servers")
        found[name] = size_bytes(size)
    return found


def capacity_of(server: str, capacities: Mapping[str, int]) -> int | None:
    """None: nothing was said."""
    return capacities.get(server, capacities.get(EVERY))


def check_stored(capacities: Mapping[str, int], stored: Mapping[str, int]) -> None:
    """A store that holds more than that already is full from the first moment, and would stay so for as long as what it holds
    lives."""
    for server, held in sorted(stored.items()):
        capacity = capacity_of(server, capacities)
        if capacity is not None and held > capacity:
            rule = f"must not be less than the {held / 1e6:.0f}MB that {server} holds already"
            raise InvalidInput(OPTION, f"{server}={capacity / 1e6:g}MB", rule)
