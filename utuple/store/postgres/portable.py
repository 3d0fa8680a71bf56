"""Lines and rows between the database and the model."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from utuple.cluster.line import Line, Member
from utuple.model.columns import Columns
from utuple.model.utuple import Family, Kind
from utuple.model.value import decode_data, encode_data
from utuple.store.contract import OWN_ORIGIN, Batch


def encode_members(line: Line) -> str:
    members = [[one.name, one.accumulatable, one.suspended] for one in line.members]
    return encode_data({"members": members}).decode()


def decode_members(encoded: str) -> tuple[Member, ...]:
    return tuple(Member(*form) for form in decode_data(encoded.encode())["members"])


def batch_of(
    kind: Kind,
    families: Sequence[Family],
    family: array[int],
    columns: Sequence[Sequence[Any]],
    origin: str = OWN_ORIGIN,
) -> Batch:
    """In the order of `conditions.event_columns` or `device_columns`, perhaps followed by the expiry; `family` is that of each
    row."""
    ids, payloads, addresses, seqs, times, lats, lons, *more = columns
    is_device = kind is Kind.CF
    return Batch(
        Columns(
            tuple(families),
            family,
            b"".join(ids),
            array("q", times),
            array("d", lats),
            array("d", lons),
            array("q", more[1] if is_device else bytes(8 * len(ids))),
            tuple(addresses),
            tuple(payloads),
            more[2] if is_device else (),
        ),
        array("Q", seqs),
        array("q", more[0] if more else ()),
        origin,
    )
