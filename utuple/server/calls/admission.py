"""Admission: whatever comes in is checked against the rules of the model; bad rows are refused by their index. Pure.

A batch of EAs is checked as a whole, column by column. Only when that finds something wrong, or something it is not
sure of, its rows are looked at one by one, to name the row, the field and the rule. CFs are always looked at one by one:
each has a data template to be parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import orjson

from utuple.errors import InvalidInput
from utuple.model.area import check_position
from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.condition import encode_where
from utuple.model.limits import (
    MAX_DATA_BYTES,
    MAX_DEPTH,
    MAX_LIFETIME_S,
    MAX_NAME_BYTES,
    MAX_TIME_US,
    MIN_TIME_US,
)
from utuple.model.packed import Packed, asked_where, checked, encode_metadata
from utuple.model.utuple import Kind, Template, check_lifetime, check_time
from utuple.model.value import check_name, check_text, normal_data
from utuple.server.matching.by_address import NO_CONDITIONS, sole_address
from utuple.server.writing.request import Part, Refusal, invalid

_MAX_LIFETIME_US = MAX_LIFETIME_S * MICROSECONDS
_LEAST_US = np.array([[MIN_TIME_US], [0]])
_MOST_US = np.array([[MAX_TIME_US - 1], [_MAX_LIFETIME_US]])
_MOST_DEGREES = np.array([[90.0], [180.0]])
_SUSPECT = (b"\\u0000", b'"$bytes"', b'"":')


def admit(columns: Columns, part: Part) -> tuple[Columns, list[int] | None, list[Refusal]]:
    """The good rows (payloads in their one encoding), where they stood if some are gone, and the
    refusals of the rest."""
    if not len(columns) or (part is Part.EVENTS and _is_right(columns)):
        return columns, None, []
    good: list[int] = []
    payloads: list[bytes] = []
    refusals: list[Refusal] = []
    for row in range(len(columns)):
        try:
            payloads.append(_checked_row(columns, row, part))
            good.append(row)
        except InvalidInput as error:
            refusals.append(invalid(part, row, error))
    if not refusals:
        return replace(columns, payloads=payloads), None, []
    return replace(columns.take(good), payloads=payloads), good, refusals


def _checked_row(columns: Columns, row: int, part: Part) -> bytes:
    """Its payload in the one encoding."""
    payload = columns.payloads[row]
    if part is Part.EVENTS:
        payload = normal_data(payload)
    else:
        payload = encode_where(asked_where(payload))
        check_name("reader", columns.readers[row] if columns.readers else "")
    check_name("address", columns.addresses[row])
    check_time("time", columns.times_us[row])
    check_lifetime(columns.lifetimes_us[row] / MICROSECONDS)
    lat, lon = columns.lats[row], columns.lons[row]
    if lat == lat or lon == lon:
        check_position("position", (lat, lon))
    return payload


def _is_right(columns: Columns) -> bool:
    """Are all rows of these EAs right? True is sure; False may be a false alarm."""
    return (
        _are_numbers_right(columns)
        and _are_names_right(columns.addresses)
        and _are_payloads_right(columns.payloads)
    )


def _are_numbers_right(columns: Columns) -> bool:
    """Times and lifetimes are looked at together, and so are latitudes and longitudes: for a few rows NumPy's calls cost
    more than the numbers. A position that is missing is NaN twice; no comparison finds fault with that."""
    times, degrees = columns.times_us.tobytes(), columns.lats.tobytes()
    spans_us = np.frombuffer(times + columns.lifetimes_us.tobytes(), np.int64).reshape(2, -1)
    places = np.frombuffer(degrees + columns.lons.tobytes(), np.float64).reshape(2, -1)
    wrong = (spans_us < _LEAST_US) | (spans_us > _MOST_US) | (np.abs(places) > _MOST_DEGREES)
    nowhere = np.isnan(places)
    return not np.count_nonzero(wrong) and not np.count_nonzero(nowhere[0] != nowhere[1])


def _are_names_right(names: Sequence[str]) -> bool:
    """A name of a quarter of the characters has no more than the allowed bytes, whatever they are."""
    return (
        "\x00" not in "".join(names) and all(names) and max(map(len, names)) <= MAX_NAME_BYTES // 4
    )


def _are_payloads_right(payloads: Sequence[bytes]) -> bool:
    """Is every payload a mapping, already in its one encoding? One parse for the whole batch."""
    joined = b",".join(payloads)
    if any(mark in joined for mark in _SUSPECT) or max(map(len, payloads)) > MAX_DATA_BYTES:
        return False
    if joined.count(b"{") + joined.count(b"[") > len(payloads):
        deepest = max(payload.count(b"{") + payload.count(b"[") for payload in payloads)
        if deepest > MAX_DEPTH:
            return False
    try:
        documents = orjson.loads(b"[" + joined + b"]")
    except orjson.JSONDecodeError:
        return False
    if len(documents) != len(payloads) or set(map(type, documents)) != {dict}:
        return False
    if _are_flat(payloads, joined):
        return orjson.dumps(documents) == b"[" + joined + b"]"
    return [orjson.dumps(document) for document in documents] == list(payloads)


def _are_flat(payloads: Sequence[bytes], joined: bytes) -> bool:
    """Has each payload one brace at its beginning, one at its end, and no other? Then none of them can be
    completed by its neighbours: as many documents as payloads are one document each, and all may be written
    again at once, which is many times as fast as one by one. Joined by commas they are JSON, so that no payload
    has `}`, an end of line and `{` within."""
    if not joined.count(b"{") == len(payloads) == joined.count(b"}"):
        return False
    apart = b"\n".join(payloads)
    ends = apart.startswith(b"{") and apart.endswith(b"}")
    return ends and apart.count(b"}\n{") == len(payloads) - 1


_METADATA_FIELDS = list(orjson.loads(encode_metadata(Template())))
"""In the order in which `packed.py` writes them."""


def admit_template(half: Packed) -> Packed:
    """An EF as it is kept: checked, in its one encoding, with a reader if it has a lifetime."""
    if half.kind is not Kind.EF:
        raise InvalidInput("kind", half.kind.value, "commands are registered by the Command call")
    if half.lifetime_s > 0 and not half.reader:
        raise InvalidInput("reader", "", "an EF that is kept names its reader")
    if not _asks_rightly_for_one_address(half):
        return checked(half)
    check_lifetime(half.lifetime_s)
    if half.reader:
        check_name("reader", half.reader)
    return half


def _asks_rightly_for_one_address(half: Packed) -> bool:
    """Does it ask for one address and nothing else, validly and written as we write it? By far the most EFs do, and are
    taken as they are: to build the uTuple and to write it anew takes five times as long (docs/performance/paths.md).
    False may be a false alarm."""
    if half.payload != NO_CONDITIONS or len(half.metadata) > MAX_NAME_BYTES:
        return False
    try:
        form = orjson.loads(half.metadata)
        if type(form) is not dict or list(form) != _METADATA_FIELDS:
            return False
        address = sole_address(form)
        if not address:
            return False
        check_text("address", address)
    except (orjson.JSONDecodeError, InvalidInput):
        return False
    return orjson.dumps(form) == half.metadata
