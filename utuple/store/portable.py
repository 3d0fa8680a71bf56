"""EFs, CAs, lines and rows between the database and the model. JSON, as conditions write it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import orjson
from psycopg.rows import TupleRow

from utuple.cluster.line import Line, Member
from utuple.model.area import Area, Box, Circle
from utuple.model.columns import Columns
from utuple.model.condition import (
    Absent,
    AddressCondition,
    TypeIs,
    condition_from_list,
    condition_to_list,
    decode_where,
    encode_where,
)
from utuple.model.utuple import Family, Kind, Template, UTuple
from utuple.model.value import decode_data, encode_data
from utuple.store.contract import OWN_ORIGIN, Batch

_AREAS: dict[str, type[Box] | type[Circle]] = {"box": Box, "circle": Circle}


def encode_metadata(template: Template) -> str:
    # Of checked values, all of them numbers and texts: what `encode_data` would write.
    return orjson.dumps(
        {
            "address": condition_to_list(template.address),
            "since_us": template.since_us,
            "until_us": template.until_us,
            "area": _area_to_list(template.area),
        }
    ).decode()


def decode_metadata(encoded: str) -> Template:
    form = decode_data(encoded.encode())
    return Template(
        _address(form["address"]), form["since_us"], form["until_us"], _area(form["area"])
    )


def _address(form: object) -> AddressCondition:
    condition = condition_from_list("address", form)
    assert not isinstance(condition, Absent | TypeIs), "such an address was never stored"
    return condition


def _area_to_list(area: Area | None) -> list[object] | None:
    match area:
        case Box(south, west, north, east):
            return ["box", south, west, north, east]
        case Circle(lat, lon, radius_m):
            return ["circle", lat, lon, radius_m]
    return None


def _area(form: list[Any] | None) -> Area | None:
    return None if form is None else _AREAS[form[0]](*form[1:])


def encode_payload(utuple: UTuple) -> str:
    """The data half: values of a CA, conditions of an EF."""
    if utuple.where is not None:
        return encode_where(utuple.where).decode()
    assert utuple.data is not None
    return encode_data(utuple.data).decode()


def decode_template(
    id_: bytes,
    family: Family,
    kind: str,
    metadata: str,
    payload: bytes,
    lifetime_s: float,
    reader: str | None,
) -> UTuple:
    is_formal = kind == Kind.EF.value
    return UTuple(
        id_,
        family,
        decode_metadata(metadata),
        None if is_formal else decode_data(payload),
        decode_where(payload) if is_formal else None,
        lifetime_s,
        reader,
    )


def encode_members(line: Line) -> str:
    members = [[one.name, one.accumulatable, one.suspended] for one in line.members]
    return encode_data({"members": members}).decode()


def decode_members(encoded: str) -> tuple[Member, ...]:
    return tuple(Member(*form) for form in decode_data(encoded.encode())["members"])


def batch_of(
    kind: Kind,
    families: Sequence[Family],
    family: array[int],
    rows: Sequence[TupleRow],
    origin: str = OWN_ORIGIN,
) -> Batch:
    """Rows in the order of `sql.event_columns` or `sql.device_columns`, and the family of each."""
    columns: list[Any] = list(zip(*rows, strict=True))
    ids, payloads, addresses, seqs, expires, times, lats, lons = columns[:8]
    is_device = kind is Kind.CF
    return Batch(
        Columns(
            tuple(families),
            family,
            b"".join(ids),
            array("q", times),
            array("d", lats),
            array("d", lons),
            array("q", columns[8] if is_device else bytes(8 * len(rows))),
            addresses,
            payloads,
            columns[9] if is_device else (),
        ),
        array("Q", seqs),
        array("q", expires),
        origin,
    )
