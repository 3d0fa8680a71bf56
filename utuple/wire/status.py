"""One table between our errors and gRPC's status codes; the error's fields travel in the trailers."""

from __future__ import annotations

from typing import Any

import grpc
import orjson

from utuple.errors import (
    Closed,
    Conflict,
    InvalidInput,
    NotRegistered,
    OutcomeUnknown,
    Overloaded,
    Refused,
    Unavailable,
    UTupleError,
    shown,
)

_TRAILER = "utuple-error-bin"

_CODES: tuple[tuple[type[UTupleError], grpc.StatusCode], ...] = (
    (InvalidInput, grpc.StatusCode.INVALID_ARGUMENT),
    (Conflict, grpc.StatusCode.ALREADY_EXISTS),
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


def code_of(error: UTupleError) -> grpc.StatusCode:
    return next((code for kind, code in _CODES if isinstance(error, kind)), grpc.StatusCode.UNKNOWN)


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: UTupleError) -> None:
    """End the call with this error."""
    described: dict[str, object] = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, InvalidInput):
        described |= {"field": error.field, "value": shown(error.value), "rule": error.rule}
    if isinstance(error, NotRegistered):
        described["retry_after_s"] = error.retry_after_s
    trailers = ((_TRAILER, orjson.dumps(described)),)
    await context.abort(code_of(error), str(error), trailers)


def error_from(call_error: grpc.aio.AioRpcError, *, sent: str) -> UTupleError:
    """What a failed call means to its caller. `sent` says what the call was, for the message."""
    described = _described(call_error)
    message = str(described.get("message") or call_error.details() or call_error.code().name)
    match described.get("error"):
        case "InvalidInput":
            return InvalidInput(
                str(described["field"]), Shown(str(described["value"])), str(described["rule"])
            )
        case "Conflict":
            return Conflict(message)
        case "Overloaded" | "Unavailable" | "NotRegistered" as name:
            kind = {"Overloaded": Overloaded, "Unavailable": Unavailable}.get(name, NotRegistered)
            return kind(message, retry_after_s=float(str(described.get("retry_after_s", 1.0))))
        case "Closed":
            return Closed(message)
    if described or call_error.code() not in _NOTHING_HAPPENED:
        return OutcomeUnknown(f"{sent}: {message}")
    return InvalidInput(sent, message, "the server could not read this call")


def _described(call_error: grpc.aio.AioRpcError) -> dict[str, object]:
    for name, value in call_error.trailing_metadata() or ():
        if name == _TRAILER and isinstance(value, bytes):
            described = orjson.loads(value)
            return described if isinstance(described, dict) else {}
    return {}


class Shown(str):
    """A value as the server showed it: printed as it came, not quoted once more."""

    def __repr__(self) -> str:
        return str(self)
