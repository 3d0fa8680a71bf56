"""JSON lines in and out: field names are the SDK's arguments, times ISO 8601, bytes {"$bytes": base64}.
Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

import orjson

from utuple.errors import InvalidInput
from utuple.model.area import Position, check_position
from utuple.model.limits import MAX_INTEGER, MIN_INTEGER
from utuple.model.utuple import check_lifetime, family
from utuple.model.value import check_name, decode_all, decode_data, encode_data

if TYPE_CHECKING:
    from utuple import Drop

EVENT_FIELDS = ("subject", "type", "address", "position", "data", "time", "lifetime_s")
_REQUIRED = ("subject", "type", "address", "data")

_ANY_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_LONG = b"0" * 19
"""So many digits in a row may be a number that does not fit into 64 bits."""
_MOST_DIGITS = len(str(MIN_INTEGER))
_SHOWN_DIGITS = 40

Event = dict[str, Any]
"""The arguments of `emit`."""


class Delivered(Protocol):
    """A delivery of the SDK."""

    @property
    def id(self) -> UUID: ...
    @property
    def subject(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def time(self) -> datetime: ...
    @property
    def position(self) -> Position | None: ...
    @property
    def data(self) -> dict[str, Any]: ...
    @property
    def stored(self) -> bool: ...


def event_of_line(line: bytes, defaults: Mapping[str, Any]) -> Event:
    """One line as the arguments of `emit`; what the line does not say, `defaults` say."""
    try:
        said = decode_json(line)
    except InvalidInput:
        raise
    except orjson.JSONDecodeError as error:
        raise InvalidInput(
            "line", line.decode(errors="replace"), f"must be JSON: {error}"
        ) from None
    if not isinstance(said, dict):
        raise InvalidInput("line", said, "must be a JSON object")
    return checked_event({**defaults, **said})


def decode_json(text: bytes) -> Any:
    """Any JSON, with the bytes in it. Raises orjson's error, or what is wrong with the bytes or a number."""
    said = decode_data(text)
    if _has_long_numbers(text):
        _check_whole_numbers(text)
    return said


def _has_long_numbers(text: bytes) -> bool:
    return _LONG in text.translate(_ANY_DIGIT)


def _check_whole_numbers(text: bytes) -> None:
    """Of a whole number that does not fit into 64 bits orjson makes a float: here it is refused, and not changed."""

    def whole(digits: str) -> int:
        if len(digits) > _MOST_DIGITS or not MIN_INTEGER <= int(digits) <= MAX_INTEGER:
            rule = f"a whole number must lie in [{MIN_INTEGER}, {MAX_INTEGER}]"
            raise InvalidInput("data", digits[:_SHOWN_DIGITS], rule)
        return int(digits)

    try:
        json.loads(text, parse_int=whole)
    except RecursionError:
        raise InvalidInput("data", f"{len(text)} bytes", "is nested too deep") from None


def events_of_lines(lines: Sequence[bytes]) -> list[Event | InvalidInput]:
    """Many lines, none of them empty, as the arguments of `emit_many`, which checks the rest; or why a line cannot be."""
    try:
        said: list[Any] = list(decode_all(lines))
        if len(said) == len(lines) and not _has_long_numbers(b"\n".join(lines)):
            return [_for_emit_many(one) for one in said]
    except (orjson.JSONDecodeError, InvalidInput):
        """One of them; which one is found below."""
    return [_event_or_why(line) for line in lines]


def _event_or_why(line: bytes) -> Event | InvalidInput:
    try:
        return _for_emit_many(decode_json(line))
    except InvalidInput as error:
        return error
    except orjson.JSONDecodeError as error:
        return InvalidInput("line", line.decode(errors="replace"), f"must be JSON: {error}")


def _for_emit_many(said: Any) -> Event | InvalidInput:
    """JSON's lists and texts as the SDK's values."""
    if type(said) is not dict:
        return InvalidInput("line", said, "must be a JSON object")
    if "id" in said:
        return InvalidInput("id", said["id"], f"is not one of {', '.join(EVENT_FIELDS)}")
    if type(position := said.get("position")) is list:
        said["position"] = tuple(position)
    try:
        if (time := said.get("time")) is not None:
            said["time"] = _instant(time)
        elif "time" in said:
            del said["time"]
    except InvalidInput as error:
        return error
    if "lifetime_s" in said and said["lifetime_s"] is None:
        del said["lifetime_s"]
    return said


def checked_event(said: Mapping[str, Any]) -> Event:
    """Everything `emit` would refuse is refused here, before any line of a batch is sent."""
    for name in said:
        if name not in EVENT_FIELDS:
            raise InvalidInput(name, said[name], f"is not one of {', '.join(EVENT_FIELDS)}")
    for name in _REQUIRED:
        if name not in said:
            raise InvalidInput(name, None, "is missing")
    event = dict(said)
    family(event["subject"], event["type"])
    check_name("address", event["address"])
    encode_data(event["data"])
    if event.get("position") is None:
        event.pop("position", None)
    else:
        event["position"] = check_position("position", event["position"])
    if event.get("time") is None:
        event.pop("time", None)
    else:
        event["time"] = _instant(event["time"])
    if event.get("lifetime_s") is None:
        event.pop("lifetime_s", None)
    else:
        check_lifetime(event["lifetime_s"])
    return event


def _instant(said: object) -> datetime:
    if isinstance(said, datetime):
        return said
    try:
        instant = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        instant = None
    if instant is None:
        raise InvalidInput("time", said, "must be ISO 8601, such as 2026-01-31T08:00:00Z")
    if instant.tzinfo is None:
        raise InvalidInput("time", said, "must say its zone: end it with Z for UTC, or +09:00")
    return instant


def time_shown(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def line_of_delivery(delivered: Delivered) -> bytes:
    """A delivery as one line, without its end."""
    head = orjson.dumps(
        {
            "id": str(delivered.id),
            "subject": delivered.subject,
            "type": delivered.type,
            "address": delivered.address,
            "time": time_shown(delivered.time),
            "position": delivered.position,
            "stored": delivered.stored,
        }
    )
    # Data has its own encoding, in which bytes are written.
    return head[:-1] + b',"data":' + encode_data(delivered.data) + b"}"


def data_shown(delivered: Delivered) -> bytes:
    """Its data alone, as JSON."""
    return encode_data(delivered.data)


def data_of_text(text: str) -> dict[str, Any]:
    """`--data` of emit and command."""
    try:
        data = decode_data(text.encode())
    except InvalidInput as error:
        raise InvalidInput("--data", error.value, error.rule) from None
    except orjson.JSONDecodeError as error:
        raise InvalidInput(
            "--data", text, f"must be JSON, such as '{{\"on\": false}}': {error}"
        ) from None
    if not isinstance(data, dict):
        raise InvalidInput("--data", text, "must be a JSON object, such as '{\"on\": false}'")
    encode_data(data)
    return data


def line_of_drop(drop: Drop) -> bytes:
    """What a reader is told of the time it was away."""
    said = {
        "dropped": drop.count,
        "policy": drop.policy,
        "since": drop.since.isoformat(),
        "until": drop.until.isoformat(),
        "server": drop.server,
        "zeta": drop.zeta,
        "read": drop.call,
    }
    return orjson.dumps(said)
