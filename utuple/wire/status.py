"""One table between our errors and gRPC's status codes; the error's fields travel in the trailers."""

from __future__ import annotations

from typing import Any

import grpc
import orjson

from utuple.errors import (
    Closed,
    Conflict,
    InvalidInput,
    NotAllowed,
    NotRegistered,
    OutcomeUnknown,
    Overloaded,
    Refused,
    Unavailable,
    UTupleError,
    shown,
)

TRAILER = "utuple-error-bin"
"""The error's fields, in the trailers of a call."""

_CODES: tuple[tuple[type[UTupleError], grpc.StatusCode], ...] = (
    (InvalidInput, grpc.StatusCode.INVALID_ARGUMENT),
    (Conflict, grpc.StatusCode.ALREADY_EXISTS),
    (NotAllowed, grpc.StatusCode.PERMISSION_DENIED),
    (Refused, grpc.StatusCode.FAILED_PRECONDITION),
    (Overloaded, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (Unavailable, grpc.StatusCode.UNAVAILABLE),
    (NotRegistered, grpc.StatusCode.UNAVAILABLE),
    (OutcomeUnknown, grpc.StatusCode.UNKNOWN),
    (Closed, grpc.StatusCode.CANCELLED),
)

_NOTHING_HAPPENED = frozenset(
    (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.OUT_OF_RANGE)
)
"""Codes gRPC itself gives before a handler has run."""

_LATE = "Deadline Exceeded"
"""What gRPC says of a call whose time is over."""


def code_of(error: UTupleError) -> grpc.StatusCode:
    return next((code for kind, code in _CODES if isinstance(error, kind)), grpc.StatusCode.UNKNOWN)


def described(error: UTupleError) -> bytes:
    """Its fields, as they travel."""
    fields: dict[str, object] = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, InvalidInput):
        fields |= {"field": error.field, "value": shown(error.value), "rule": error.rule}
    if isinstance(error, NotRegistered):
        fields["retry_after_s"] = error.retry_after_s
    return orjson.dumps(fields)


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: UTupleError) -> None:
    """End the call with this error."""
    await context.abort(code_of(error), str(error), ((TRAILER, described(error)),))


def error_from(call_error: grpc.aio.AioRpcError, *, sent: str) -> UTupleError:
    """What a failed call means to its caller. `sent` says what the call was, for the message."""
    fields = _trailer(call_error)
    if not fields and call_error.code() in _NOTHING_HAPPENED:
        message = call_error.details() or call_error.code().name
        return InvalidInput(sent, message, "the server could not read this call")
    return _error(fields, _words_of(call_error), sent)


def _words_of(call_error: grpc.aio.AioRpcError) -> str:
    is_late = call_error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    if is_late and call_error.details() in (None, "", _LATE):
        return "no answer in time"
    return call_error.details() or call_error.code().name


def error_described(failure: bytes, *, sent: str) -> UTupleError:
    """The same for a failure that came as an answer on a stream."""
    return _error(_fields(failure), "the server does not say why", sent)


def _error(fields: dict[str, object], otherwise: str, sent: str) -> UTupleError:
    message = str(fields.get("message") or otherwise)
    match fields.get("error"):
        case "InvalidInput":
            return InvalidInput(
                str(fields["field"]), Shown(str(fields["value"])), str(fields["rule"])
            )
        case "Conflict":
            return Conflict(message)
        case "NotAllowed":
            return NotAllowed(message)
        case "Overloaded" | "Unavailable" | "NotRegistered" as name:
            kind = {"Overloaded": Overloaded, "Unavailable": Unavailable}.get(name, NotRegistered)
            return kind(message, retry_after_s=float(str(fields.get("retry_after_s", 1.0))))
        case "Closed":
            return Closed(message)
    return OutcomeUnknown(f"{sent}: {message}")


def _trailer(call_error: grpc.aio.AioRpcError) -> dict[str, object]:
    for name, value in call_error.trailing_metadata() or ():
        if name == TRAILER and isinstance(value, bytes):
            return _fields(value)
    return {}


def _fields(travelled: bytes) -> dict[str, object]:
    fields = orjson.loads(travelled)
    return fields if isinstance(fields, dict) else {}


class Shown(str):
    """A value as the server showed it: printed as it came, not quoted once more."""

    def __repr__(self) -> str:
        return str(self)
