"""Errors as problem+json (RFC 9457): one table from the SDK's tree of errors to status codes. Pure, but for the answer."""

from __future__ import annotations

import math
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import utuple
from utuple.admin.choice import NotDone

MEDIA_TYPE = "application/problem+json"
_SHOWN_CHARS = 200
Headers = dict[str, str]


class Problem(Exception):
    """An answer that is not what was asked for."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        *,
        headers: Headers | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail or title)
        self.status = status
        self.headers = headers or {}
        self.body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status}
        if detail:
            self.body["detail"] = detail
        self.body |= members

    def response(self) -> Response:
        return Response(
            encoded(self.body), self.status, media_type=MEDIA_TYPE, headers=self.headers
        )


def encoded(value: object) -> bytes:
    return orjson.dumps(
        value, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
    )


def invalid(field: str, value: object, rule: str, status: int = 400) -> Problem:
    """A value that breaks a rule, said with all three."""
    field = field.removeprefix("--")
    detail = f"{field}: {utuple_shown(value)} is refused: {rule}"
    return Problem(
        status, "Invalid input", detail, field=field, value=shown_value(value), rule=rule
    )


def utuple_shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def shown_value(value: object) -> object:
    """As JSON, if it is short; else its beginning as text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 1 << 53:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
    return short.encode(errors="replace").decode()


def problem_of(error: Exception) -> Problem:
    """By what the caller can do now."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, utuple.InvalidInput):
        return invalid(error.field, error.value, error.rule)
    if isinstance(error, utuple.Conflict):
        return Problem(409, "Conflict", str(error))
    if isinstance(error, utuple.NotAllowed):
        return Problem(403, "Not allowed", str(error))
    if isinstance(error, utuple.Refused):
        return Problem(400, "Refused", str(error))
    if isinstance(error, utuple.Overloaded):
        return Problem(503, "Overloaded", str(error), headers=_after(error.retry_after_s))
    if isinstance(error, utuple.NotRegistered):
        return Problem(
            503,
            "Unavailable",
            f"{error}; nothing was registered: try again",
            headers=_after(error.retry_after_s),
        )
    if isinstance(error, utuple.OutcomeUnknown):
        return Problem(504, "Outcome unknown", f"{error}; it may or may not be registered")
    if isinstance(error, utuple.ReaderReplaced):
        return Problem(409, "Reader replaced", str(error))
    if isinstance(error, NotDone):
        return Problem(409, "Not done", str(error))
    if isinstance(error, utuple.UTupleError):
        return Problem(503, "Unavailable", str(error), headers=_after(1))
    return Problem(500, "A fault of this door", "see its log")


def _after(seconds: float) -> Headers:
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


async def answer_problem(request: Request, error: Exception) -> Response:
    return problem_of(error).response()


async def answer_http(request: Request, error: Exception) -> Response:
    """Starlette's own: no such path, no such method."""
    assert isinstance(error, HTTPException)
    titles = {404: "Not found", 405: "Method not allowed"}
    detail = {
        404: f"there is nothing at {request.url.path}: GET /openapi.json says what there is",
        405: f"{request.method} is not understood at {request.url.path}",
    }.get(error.status_code, error.detail)
    problem = Problem(error.status_code, titles.get(error.status_code, error.detail), detail)
    problem.headers = dict(error.headers or {})
    return problem.response()
