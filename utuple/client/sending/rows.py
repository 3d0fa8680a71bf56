"""Events as columns, straight from the user's mappings. Pure: ids and time are given.

`emit_many` must cost about a microsecond an event, so a slice is looked at column by column; only when a
column holds something unusual is each of its values looked at, by the model's own check. A wrong value is
named with its row: `events[17].data.kg`.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import countOf, itemgetter
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import orjson

from utuple.client.arguments import instant_us
from utuple.errors import InvalidInput
from utuple.model.area import check_position
from utuple.model.columns import MICROSECONDS, NO_POSITION, Columns
from utuple.model.limits import MAX_DATA_BYTES, MAX_LIFETIME_S
from utuple.model.utuple import ID_BYTES, Family, check_lifetime
from utuple.model.utuple import family as checked_family
from utuple.model.value import are_plain_names, check_name, encode_data

T = TypeVar("T")

DEFAULT_LIFETIME_S = 7 * 86_400

_NAMES = frozenset("subject type address position data time lifetime_s id".split())
_REQUIRED = frozenset("subject type address data".split())
"""Of an event; and all there is to a simple command."""
_PLAIN = frozenset((str, int, float, bool))
_SUSPECT = ((b"$", b'"$bytes"'), (b"\\", b"\\u0000"), (b"u", b"null"), (b'""', b'"":'))
_BETWEEN, _CUT = b"},{", b"}\n{"
_NOWHERE = (NO_POSITION, NO_POSITION)
_NEAR_ROWS = 1_024
"""Events that are walked through at a time: after the first walk they are in the processor's caches."""
_LOW_BITS = 62
_PARTS = 16


def event_columns(
    events: Sequence[Mapping[str, Any]], first: int, now_us: int, random: int
) -> Columns:
    """The columns of these events, of which the first has the number `first`: a slice of `emit_many`, or what `emit` has
    gathered. `random`: 74 bits."""
    asked = _Slice(events, first)
    families, family = asked.families()
    lats, lons = asked.positions()
    return Columns(
        families=families,
        family=family,
        ids=asked.ids(now_us, random),
        times_us=asked.times(now_us),
        lats=lats,
        lons=lons,
        lifetimes_us=asked.lifetimes(),
        addresses=asked.addresses(),
        payloads=asked.payloads(),
    )


def wrong_events(events: Sequence[Mapping[str, Any]], first: int) -> dict[int, InvalidInput]:
    """Those that cannot be registered, by number, each with its reason. Mostly few are wrong: what is sound
    is left aside in large parts."""
    try:
        event_columns(events, first, 0, 0)
    except InvalidInput as error:
        if len(events) == 1:
            return {first: error}
    else:
        return {}
    found: dict[int, InvalidInput] = {}
    step = -(-len(events) // _PARTS)
    for at in range(0, len(events), step):
        found |= wrong_events(events[at : at + step], first + at)
    return found


class Commands(NamedTuple):
    """Simple commands, a slice of `command_many`."""

    families: tuple[Family, ...]
    family: array[int]
    """Per row, which of `families`."""
    ids: bytes
    addresses: Sequence[str]
    payloads: Sequence[bytes]

    def take(self, rows: Sequence[int]) -> Commands:
        ids = [self.ids[row * ID_BYTES : (row + 1) * ID_BYTES] for row in rows]
        return Commands(
            self.families,
            array("I", [self.family[row] for row in rows]),
            b"".join(ids),
            [self.addresses[row] for row in rows],
            [self.payloads[row] for row in rows],
        )


def simple_commands(
    commands: Sequence[Mapping[str, Any]], first: int, now_us: int, random: int
) -> Commands:
    """A slice of `command_many` whose first command has the number `first`. `random`: 74 bits."""
    asked = _Slice(commands, first, "commands", _REQUIRED)
    families, family = asked.families()
    ids = ids_of(now_us, random, len(commands))
    return Commands(families, family, ids, asked.addresses(), asked.payloads())


def ids_of(now_us: int, random: int, count: int) -> bytes:
    """UUIDv7s that count up from 74 random bits (RFC 9562, section 6.2, method 2)."""
    ms = (now_us // 1000) & ((1 << 48) - 1)
    high = (ms << 16) | (0x7 << 12) | ((random >> _LOW_BITS) & 0xFFF)
    low = random & ((1 << _LOW_BITS) - 1)
    low = min(low, (1 << _LOW_BITS) - count)
    variant = 0b10 << _LOW_BITS
    words = array("Q", [high, 0]) * count
    words[1::2] = array("Q", range(variant | low, (variant | low) + count))
    if sys.byteorder == "little":
        words.byteswap()
    return words.tobytes()


class _Slice:
    """Events and where they stand, so that a complaint can name its row."""

    def __init__(
        self,
        events: Sequence[Mapping[str, Any]],
        first: int,
        what: str = "events",
        names: frozenset[str] = _NAMES,
    ) -> None:
        self._events = events
        self._first = first
        self._what = what
        self._columns = _alike(events, names)
        """By name, if all events say the same things; else each is looked at."""
        if self._columns is None and not _all_named(events, names):
            self._each(lambda event: _check_names(event, names))

    def _each(self, check: Callable[[Mapping[str, Any]], T]) -> list[T]:
        """The slow way: one by one, naming the row that is wrong."""
        found = []
        for row, event in enumerate(self._events, self._first):
            try:
                found.append(check(event))
            except InvalidInput as error:
                where = f"{self._what}[{row}]" + (f".{error.field}" if error.field else "")
                raise InvalidInput(where, error.value, error.rule) from None
        return found

    def _column(self, name: str, default: object = None) -> Sequence[Any]:
        if self._columns is None:
            return [event.get(name, default) for event in self._events]
        return self._columns.get(name) or [default] * len(self._events)

    def families(self) -> tuple[tuple[Family, ...], array[int]]:
        """The different ones, numbered in order of appearance, and each row's number."""
        subjects, types = self._column("subject"), self._column("type")
        count = len(self._events)
        try:
            is_one = subjects.count(subjects[0]) == count == types.count(types[0])
            pairs = [(subjects[0], types[0])] if is_one else list(zip(subjects, types, strict=True))
            numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        except (TypeError, ValueError):  # a list is no subject, and arrays cannot be compared
            self._each(_family)
            raise
        family = array("I", bytes(4 * count) if is_one else map(numbers.__getitem__, pairs))
        try:
            return tuple(checked_family(*pair) for pair in numbers), family
        except InvalidInput:
            self._each(_family)
            raise

    def ids(self, now_us: int, random: int) -> bytes:
        made = ids_of(now_us, random, len(self._events))
        if {*map(type, self._column("id"))} == {type(None)}:
            return made
        rows = range(0, len(made), ID_BYTES)
        given = self._each(_given_id)
        return b"".join(
            own or made[at : at + ID_BYTES] for own, at in zip(given, rows, strict=True)
        )

    def addresses(self) -> Sequence[str]:
        column = self._column("address")
        if not are_plain_names(column):
            return self._each(lambda event: check_name("address", event["address"]))
        return column

    def positions(self) -> tuple[array[float], array[float]]:
        column = self._column("position")
        kinds = set(map(type, column))
        if kinds == {type(None)}:
            nowhere = array("d", [NO_POSITION]) * len(column)
            return nowhere, nowhere
        if kinds == {tuple} and set(map(len, column)) == {2}:
            both = list(chain.from_iterable(column))
            lats, lons = both[0::2], both[1::2]
            if {*map(type, both)} <= {float, int} and _are_on_earth(lats, lons):
                return array("d", lats), array("d", lons)
        column = self._each(lambda e: check_position("position", e.get("position")) or _NOWHERE)
        return array("d", map(itemgetter(0), column)), array("d", map(itemgetter(1), column))

    def times(self, now_us: int) -> array[int]:
        column = self._column("time")
        if {*map(type, column)} == {type(None)}:
            return array("q", [now_us]) * len(column)
        return array("q", self._each(lambda event: _time_us(event.get("time"), now_us)))

    def lifetimes(self) -> array[int]:
        column = self._column("lifetime_s", DEFAULT_LIFETIME_S)
        is_plain = {*map(type, column)} <= {int, float}
        alike = is_plain and column.count(column[0]) == len(column)
        if alike and 0 <= column[0] <= MAX_LIFETIME_S:
            return array("q", [round(column[0] * MICROSECONDS)]) * len(column)
        return array(
            "q",
            self._each(
                lambda e: round(
                    check_lifetime(e.get("lifetime_s", DEFAULT_LIFETIME_S)) * MICROSECONDS
                )
            ),
        )

    def payloads(self) -> list[bytes]:
        return encode_plain(self._column("data")) or self._each(
            lambda event: encode_data(event["data"])
        )


def encode_plain(column: Sequence[Mapping[str, Any]]) -> list[bytes] | None:
    """What `encode_data` gives for each, or None if one needs a closer look.

    They are written as one list and cut apart: with no mapping inside a mapping, `},{` stands between two
    events and nowhere else, unless a text holds it too, which the count shows.
    """
    try:
        kinds = set(map(type, chain.from_iterable(map(dict.values, column))))  # type: ignore[arg-type]
        if not kinds <= _PLAIN:
            return None
        whole = orjson.dumps(column)
    except TypeError:
        return None
    if (
        any(mark in whole and text in whole for mark, text in _SUSPECT)
        or whole.count(_BETWEEN) != len(column) - 1
    ):
        return None
    encoded = (
        whole[1:-1].replace(_BETWEEN, _CUT).split(b"\n")
    )  # JSON has no such end of line within
    small = len(whole) <= MAX_DATA_BYTES or max(map(len, encoded)) <= MAX_DATA_BYTES
    return encoded if small else None


def _alike(
    events: Sequence[Mapping[str, Any]], allowed: frozenset[str]
) -> dict[str, list[Any]] | None:
    """The columns of events that are plain mappings of the same names, none of them wrong or missing."""
    if set(map(type, events)) != {dict}:
        return None
    names = tuple(events[0])
    if not allowed.issuperset(names) or not _REQUIRED.issubset(names):
        return None
    if set(map(len, events)) != {len(names)}:
        return None
    columns: dict[str, list[Any]] = {name: [] for name in names}
    try:
        for at in range(0, len(events), _NEAR_ROWS):
            some = events[at : at + _NEAR_ROWS]
            for name, column in columns.items():
                column.extend(map(itemgetter(name), some))
    except KeyError:
        return None
    return columns


def _all_named(events: Sequence[Mapping[str, Any]], allowed: frozenset[str]) -> bool:
    if not all(issubclass(kind, Mapping) for kind in set(map(type, events))):
        return False
    first = tuple(events[0])
    alike = countOf(map(tuple, events), first) == len(events)
    seen = {first} if alike else set(map(tuple, events))
    return all(allowed.issuperset(names) and set(names) >= _REQUIRED for names in seen)


def _family(event: Mapping[str, Any]) -> Family:
    return checked_family(event["subject"], event["type"])


def _given_id(event: Mapping[str, Any]) -> bytes | None:
    value = event.get("id")
    if value is None:
        return None
    if not isinstance(value, UUID):
        raise InvalidInput("id", value, "must be a uuid.UUID, or None for a new one")
    return value.bytes


def _check_names(event: object, allowed: frozenset[str]) -> None:
    if not isinstance(event, Mapping):
        raise InvalidInput("", event, f"must be a mapping of {sorted(allowed)}")
    for name in event:
        if name not in allowed:
            raise InvalidInput(str(name), event[name], f"must be one of {sorted(allowed)}")
    for name in sorted(_REQUIRED.difference(event)):
        raise InvalidInput(name, None, "is missing")


def _are_on_earth(lats: Sequence[float], lons: Sequence[float]) -> bool:
    if min(lats) >= -90 and max(lats) <= 90 and min(lons) >= -180 and max(lons) <= 180:
        return not math.isnan(sum(lats) + sum(lons))  # of small numbers: a huge one cannot be added
    return False


def _time_us(value: object, now_us: int) -> int:
    return now_us if value is None else instant_us("time", value)
