"""`POST /v1/events` and `GET /v1/events`: register events, read the stored ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from utuple.cli.verbs.json_lines import checked_event
from utuple.doors.http.door import door_of, space_of
from utuple.doors.http.problems import Problem, encoded
from utuple.doors.http.streaming import Streamed
from utuple.doors.http.verbs import asking
from utuple.doors.http.verbs.body import JSON, NDJSON, chunks, json_object, media_type
from utuple.doors.http.verbs.formats import FORMATS, chosen
from utuple.doors.http.verbs.ingest import Ingest

_ONE = encoded({"registered": 1, "refused": 0, "refusals": []})


async def register(request: Request) -> Response:
    """202 when what was not refused is durable."""
    door = door_of(request)
    asking.check_known(request.query_params, ())
    if media_type(request) == NDJSON:
        answer = await Ingest(space_of(request), door.limits).run(chunks(request, door.limits))
        if answer["refused"] and not answer["registered"]:
            raise Problem(400, "Refused", "every row was refused: nothing is registered", **answer)
        return Response(encoded(answer), 202, media_type=JSON)
    event = checked_event(await json_object(request, door.limits))
    await space_of(request).emit(**event)
    return Response(_ONE, 202, media_type=JSON)


async def read(request: Request) -> Any:
    """The stored ones, as they are found."""
    door = door_of(request)
    query = request.query_params
    asked = asking.template_of(query, "limit", "newest")
    asked["limit"], asked["newest_first"] = (
        asking.whole(query, "limit"),
        asking.flag(query, "newest"),
    )
    media_type = chosen(request.headers.get("accept", ""))
    found = space_of(request).read(**asked)
    pieces = FORMATS[media_type](_opened(found.batches))
    return Streamed(door.streams, pieces, media_type, lasts=False)


async def _opened(batches: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    try:
        async for batch in batches:
            yield batch
    finally:
        await batches.aclose()
