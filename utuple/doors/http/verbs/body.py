"""A request's body: bounded in size and in time, JSON or lines of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request

from utuple.cli.verbs.json_lines import decode_json
from utuple.doors.http.config import Limits
from utuple.doors.http.problems import Problem, invalid

JSON = "application/json"
NDJSON = "application/x-ndjson"
_NDJSON = (NDJSON, "application/ndjson", "application/jsonl")


def media_type(request: Request) -> str:
    """JSON or NDJSON. A page of another site cannot send either without asking, and is not answered when it asks."""
    packed = request.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        raise _unsupported("Content-Encoding", packed, "must be left out: bodies come as they are")
    said = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if said == JSON:
        return JSON
    if said in _NDJSON:
        return NDJSON
    raise _unsupported("Content-Type", said, f"must be {JSON}, or {NDJSON} for many events")


def _unsupported(header: str, value: str, rule: str) -> Problem:
    problem = invalid(header, value, rule, 415)
    problem.body["title"] = "Unsupported media type"
    return problem


async def chunks(request: Request, limits: Limits) -> AsyncIterator[bytes]:
    """As they come. A client that sends nothing for too long is answered so."""
    stream = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(limits.stalled_s):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise Problem(
                408, "Request timeout", f"nothing of the body came for {limits.stalled_s:g} s"
            ) from None
        except ClientDisconnect:
            raise Problem(400, "Disconnected", "the client went away in its body") from None
        if chunk is None:
            return
        if chunk:
            yield chunk


def too_large(limits: Limits, what: str) -> Problem:
    return Problem(
        413,
        "Too large",
        f"{what} has more than {limits.body_bytes} bytes",
        field=what,
        value=None,
        rule=f"must have at most {limits.body_bytes} bytes",
    )


async def json_object(request: Request, limits: Limits) -> dict[str, Any]:
    """The whole body as one JSON object."""
    if media_type(request) != JSON:
        raise Problem(415, "Unsupported media type", f"send {JSON} here")
    whole = bytearray()
    async for chunk in chunks(request, limits):
        whole += chunk
        if len(whole) > limits.body_bytes:
            raise too_large(limits, "body")
    return object_of(bytes(whole))


async def json_object_if_any(request: Request, limits: Limits) -> dict[str, Any]:
    """Orders that need no words may have no body."""
    if not request.headers.get("content-length", "0").strip("0") and (
        "transfer-encoding" not in request.headers
    ):
        return {}
    return await json_object(request, limits)


def object_of(text: bytes) -> dict[str, Any]:
    try:
        said = decode_json(text)
    except orjson.JSONDecodeError as error:
        raise invalid("body", text.decode(errors="replace"), f"must be JSON: {error}") from None
    if not isinstance(said, dict):
        raise invalid("body", said, "must be a JSON object")
    return said
