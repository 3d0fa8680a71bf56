"""Admission: every row of a batch checked against the rules of the model, bad ones refused by index.

The common batch is checked as a whole; only when something looks wrong are rows looked at one by one.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import orjson

from utuple.errors import InvalidInput
from utuple.model.area import check_position
from utuple.model.asked import asked_where
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
from utuple.model.utuple import check_lifetime, check_time
from utuple.model.value import check_name, normal_data
from utuple.server.writing.request import Part, Refusal, invalid

_MAX_LIFETIME_US = MAX_LIFETIME_S * MICROSECONDS
_FEW = 32
_SUSPECT = (b"\\u0000", b'"$bytes"', b'"":')


def admit(columns: Columns, part: Part) -> tuple[Columns, list[int] | None, list[Refusal]]:
    """The good rows (payloads in their one encoding), where they stood if some are gone, and the
    refusals of the rest."""
    if not len(columns) or (part is Part.EVENTS and len(columns) == 1 and _is_right(columns)):
        return columns, None, []
    columns, bad = _payloads(columns, part)
    for row in _suspect_rows(columns, part):
        if row not in bad:
            try:
                _check_row(columns, row, part)
            except InvalidInput as error:
                bad[row] = error
    if not bad:
        return columns, None, []
    good = [row for row in range(len(columns)) if row not in bad]
    refusals = [invalid(part, row, error) for row, error in sorted(bad.items())]
    return columns.take(good), good, refusals


def _is_right(columns: Columns) -> bool:
    """A lonely EA, at one look. False may be a false alarm."""
    lat, lon = columns.lats[0], columns.lons[0]
    address, payload = columns.addresses[0], columns.payloads[0]
    return (
        MIN_TIME_US <= columns.times_us[0] < MAX_TIME_US
        and 0 <= columns.lifetimes_us[0] <= _MAX_LIFETIME_US
        and ((-90 <= lat <= 90 and -180 <= lon <= 180) or (lat != lat and lon != lon))
        and 0 < len(address) <= MAX_NAME_BYTES // 4
        and "\x00" not in address
        and len(payload) <= MAX_DATA_BYTES
        and payload.count(b"{") + payload.count(b"[") <= MAX_DEPTH
        and not any(mark in payload for mark in _SUSPECT)
        and _is_encoded(payload)
    )


def _is_encoded(payload: bytes) -> bool:
    """Is it a mapping, in its one encoding?"""
    try:
        document = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return False
    return type(document) is dict and orjson.dumps(document) == payload


def _suspect_rows(columns: Columns, part: Part) -> list[int]:
    """Rows that may break a rule. A whole-batch look first: almost always there are none."""
    suspect = set() if _are_few_and_right(columns) else _suspect_numbers(columns)
    suspect.update(_suspect_names(columns.addresses))
    if part is Part.DEVICES:
        readers = columns.readers or [""] * len(columns)
        suspect.update(_suspect_names(readers))
    return sorted(suspect)


def _are_few_and_right(columns: Columns) -> bool:
    """What NumPy would take longer to begin with than to look at."""
    if len(columns) > _FEW:
        return False
    times, lifetimes = columns.times_us, columns.lifetimes_us
    return (
        min(times) >= MIN_TIME_US
        and max(times) < MAX_TIME_US
        and min(lifetimes) >= 0
        and max(lifetimes) <= _MAX_LIFETIME_US
        and all(
            (-90 <= lat <= 90 and -180 <= lon <= 180) or (lat != lat and lon != lon)
            for lat, lon in zip(columns.lats, columns.lons, strict=True)
        )
    )


def _suspect_numbers(columns: Columns) -> set[int]:
    times = np.frombuffer(columns.times_us, dtype=np.int64)
    lifetimes = np.frombuffer(columns.lifetimes_us, dtype=np.int64)
    lats = np.frombuffer(columns.lats, dtype=np.float64)
    lons = np.frombuffer(columns.lons, dtype=np.float64)
    nowhere = np.isnan(lats) & np.isnan(lons)
    good = (
        (times >= MIN_TIME_US)
        & (times < MAX_TIME_US)
        & (lifetimes >= 0)
        & (lifetimes <= _MAX_LIFETIME_US)
        & (nowhere | ((np.abs(lats) <= 90) & (np.abs(lons) <= 180)))
    )
    return set(np.flatnonzero(~good).tolist())


def _suspect_names(names: Sequence[str]) -> list[int]:
    if "\x00" not in "".join(names) and all(names) and max(map(len, names)) <= MAX_NAME_BYTES // 4:
        return []
    return [
        row
        for row, name in enumerate(names)
        if not name or "\x00" in name or len(name) > MAX_NAME_BYTES // 4
    ]


def _check_row(columns: Columns, row: int, part: Part) -> None:
    check_name("address", columns.addresses[row])
    check_time("time", columns.times_us[row])
    check_lifetime(columns.lifetimes_us[row] / MICROSECONDS)
    lat, lon = columns.lats[row], columns.lons[row]
    if lat == lat or lon == lon:
        check_position("position", (lat, lon))
    if part is Part.DEVICES:
        check_name("reader", columns.readers[row] if columns.readers else "")


def _payloads(columns: Columns, part: Part) -> tuple[Columns, dict[int, InvalidInput]]:
    """Every payload in its one encoding."""
    if part is Part.EVENTS and _all_plain(columns.payloads):
        return columns, {}
    bad: dict[int, InvalidInput] = {}
    normal: list[bytes] = []
    for row, payload in enumerate(columns.payloads):
        try:
            if part is Part.EVENTS:
                normal.append(normal_data(payload))
            else:
                normal.append(encode_where(asked_where(payload)))
        except InvalidInput as error:
            bad[row] = error
            normal.append(b"{}")
    return replace(columns, payloads=normal), bad


def _all_plain(payloads: Sequence[bytes]) -> bool:
    """Is every payload a plain mapping, already in its one encoding? One parse for the whole batch."""
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
    again at once, which is thirty times as fast as one by one. Joined by commas they are JSON, so that no payload
    has `}`, an end of line and `{` within."""
    if not joined.count(b"{") == len(payloads) == joined.count(b"}"):
        return False
    apart = b"\n".join(payloads)
    ends = apart.startswith(b"{") and apart.endswith(b"}")
    return ends and apart.count(b"}\n{") == len(payloads) - 1
