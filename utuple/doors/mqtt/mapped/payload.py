"""Payloads and the data of uTuples. Pure.

A JSON object is the data itself, so that applications can ask for its fields; any other payload is the value of one field.
Whatever comes in comes out again byte by byte: `Form` says how. What MQTT 5 has beside a payload (content type, user
properties and so on) travels in the data under one name that no payload uses by chance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping as Table
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from utuple.doors.mqtt.codec import names
from utuple.doors.mqtt.codec.packets import Properties, Property
from utuple.doors.mqtt.mapped.identity import Form
from utuple.doors.mqtt.mapped.mapping import Mapping

BESIDE = "$mqtt"
"""The field that holds what a payload has no place for."""

_CARRIED = {
    Property.PAYLOAD_FORMAT_INDICATOR: "format",
    Property.CONTENT_TYPE: "content_type",
    Property.RESPONSE_TOPIC: "response_topic",
    Property.CORRELATION_DATA: "correlation_data",
    Property.USER_PROPERTY: "user",
}
_MAX_TEXT_BYTES = 65_535
_MAX_LONG = 0xFFFF_FFFF
_MAX_SECONDS = 253_402_300_799


class Content(NamedTuple):
    data: dict[str, Any]
    form: Form


def content_of(payload: bytes, mapping: Mapping, *, as_json: bool) -> Content:
    """`as_json`: look whether it is JSON. Messages of no family are not looked into."""
    if as_json and payload:
        try:
            said = orjson.loads(payload)
        except orjson.JSONDecodeError:
            pass
        else:
            return _json_content(payload, said, mapping)
    return raw_content(payload, mapping)


def raw_content(payload: bytes, mapping: Mapping) -> Content:
    """As it came: text, or bytes where it is none that can be stored."""
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return Content({mapping.fields_value: payload}, Form.VALUE)
    value = payload if "\0" in text else text
    return Content({mapping.fields_value: value}, Form.VALUE)


def as_raw(payload: bytes, data: Table[str, Any], mapping: Mapping) -> dict[str, Any]:
    """Data anew, with the payload as it came and with what was beside it."""
    beside = {name: value for name, value in data.get(BESIDE, {}).items() if name != "payload"}
    return {**raw_content(payload, mapping).data, **({BESIDE: beside} if beside else {})}


def _json_content(payload: bytes, said: Any, mapping: Mapping) -> Content:
    is_object = isinstance(said, dict)
    if is_object and BESIDE in said:
        return raw_content(payload, mapping)
    data = said if is_object else {mapping.fields_value: said}
    if orjson.dumps(said) == payload:
        return Content(data, Form.OBJECT if is_object else Form.JSON)
    if _is_spaced(payload) and json.dumps(said).encode() == payload:
        return Content(data, Form.SPACED_OBJECT if is_object else Form.SPACED_JSON)
    return Content({**data, BESIDE: {"payload": payload.decode("utf-8")}}, Form.RAW)


def _is_spaced(payload: bytes) -> bool:
    """Worth a closer look: Python's way of writing JSON differs from the compact one by blanks, or by escapes."""
    return b'": ' in payload or b", " in payload or b"\\u" in payload


def payload_of(data: Table[str, Any], form: Form | None, mapping: Mapping) -> bytes:
    """The bytes to deliver. `form` is None for an event of the SDK, whose data is a JSON object."""
    plain = {name: value for name, value in data.items() if name != BESIDE}
    match form:
        case None:
            return orjson.dumps(plain, default=_text_of_bytes)
        case Form.RAW:
            return str(data[BESIDE]["payload"]).encode()
        case Form.OBJECT:
            return orjson.dumps(plain)
        case Form.SPACED_OBJECT:
            return json.dumps(plain).encode()
    value = plain[mapping.fields_value]
    if form is Form.VALUE:
        return value if isinstance(value, bytes) else str(value).encode()
    return orjson.dumps(value) if form is Form.JSON else json.dumps(value).encode()


def with_form(data: dict[str, Any], form: Form) -> dict[str, Any]:
    """For commands: their ids are not ours, so the form of a payload that is no compact object travels in the data."""
    if form is Form.OBJECT:
        return data
    return {**data, BESIDE: {**data.get(BESIDE, {}), "form": int(form)}}


def form_of(data: Table[str, Any], mapping: Mapping) -> Form | None:
    """None also where the data does not have what that form needs."""
    said = _beside(data).get("form")
    if said not in tuple(Form):
        return None
    form = Form(said)
    if form is Form.RAW:
        return form if isinstance(_beside(data).get("payload"), str) else None
    is_object = form in (Form.OBJECT, Form.SPACED_OBJECT)
    return form if is_object or mapping.fields_value in data else None


def _text_of_bytes(value: object) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value)} is no JSON")


# --- what is beside a payload ---------------------------------------------------------------------


def with_properties(
    data: dict[str, Any], properties: Properties, expires_s: float | None
) -> dict[str, Any]:
    beside = {name: properties[key] for key, name in _CARRIED.items() if key in properties}
    if "user" in beside:
        beside["user"] = [list(pair) for pair in beside["user"]]
    if expires_s is not None:
        beside["expires_s"] = expires_s
    return {**data, BESIDE: {**data.get(BESIDE, {}), **beside}} if beside else data


def is_expired(data: Table[str, Any], now_s: float) -> bool:
    """The space still gives a reader that was away what expired a moment ago; MQTT does not."""
    expires_s = _beside(data).get("expires_s")
    return isinstance(expires_s, int | float) and expires_s < now_s


def properties_of(data: Table[str, Any], now_s: float) -> dict[Property, Any]:
    """For a subscriber of MQTT 5."""
    beside = _beside(data)
    found = {
        key: beside[name]
        for key, name in _CARRIED.items()
        if name in beside and _is_sayable(key, beside[name])
    }
    if Property.USER_PROPERTY in found:
        found[Property.USER_PROPERTY] = tuple((name, value) for name, value in beside["user"])
    expires_s = beside.get("expires_s")
    if isinstance(expires_s, int | float):
        left_s = math.ceil(expires_s - now_s)
        found[Property.MESSAGE_EXPIRY_INTERVAL] = min(max(0, left_s), _MAX_LONG)
    return found


def _beside(data: Table[str, Any]) -> Table[str, Any]:
    beside = data.get(BESIDE)
    return beside if isinstance(beside, dict) else {}


def _is_sayable(key: Property, value: object) -> bool:
    """Programs that use the SDK may write under this name too, and whatever they like."""
    match key:
        case Property.PAYLOAD_FORMAT_INDICATOR:
            return value in (0, 1)
        case Property.RESPONSE_TOPIC:
            return _is_text(value) and bool(value) and not names.has_wildcard(str(value))
        case Property.CORRELATION_DATA:
            return isinstance(value, bytes) and len(value) <= _MAX_TEXT_BYTES
        case Property.USER_PROPERTY:
            return isinstance(value, list) and all(
                isinstance(pair, list) and len(pair) == 2 and all(map(_is_text, pair))
                for pair in value
            )
    return _is_text(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value.encode()) <= _MAX_TEXT_BYTES


# --- position and time ------------------------------------------------------------------------------


def position_of(
    data: Table[str, Any], properties: Properties, mapping: Mapping
) -> tuple[float, float] | None:
    """From user properties, else from fields; what is no number is no position."""
    if not properties and mapping.fields_latitude not in data:
        return None
    said = dict(properties.get(Property.USER_PROPERTY, ()))
    both = [
        _number(said.get(field or default, data.get(field) if field else None))
        for field, default in ((mapping.fields_latitude, "lat"), (mapping.fields_longitude, "lon"))
    ]
    lat, lon = both
    if lat is None or lon is None or not (-90 <= lat <= 90 and -180 <= lon <= 180):
        return None
    return lat, lon


def time_of(data: Table[str, Any], properties: Properties, mapping: Mapping) -> datetime | None:
    field = mapping.fields_time
    if not properties and not field:
        return None
    said = dict(properties.get(Property.USER_PROPERTY, ()))
    value = said.get(field or "time", data.get(field) if field else None)
    if isinstance(value, str):
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            value = _number(value)
        else:
            return instant if instant.tzinfo is not None else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return datetime.fromtimestamp(value, UTC) if 0 <= value <= _MAX_SECONDS else None


def _number(value: object) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
