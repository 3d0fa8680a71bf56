"""What operators look at: each answer asks the cluster anew, but the pages' stream, which all share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

import utuple
from utuple.admin.programs import shown_line
from utuple.admin.snapshot import snapshot_of, table_of
from utuple.admin.trusting import whoami
from utuple.doors.http.door import Door, door_of, visitor_of
from utuple.doors.http.operators.parts import readers_part
from utuple.doors.http.problems import Problem, encoded
from utuple.doors.http.streaming import EVENT_STREAM, Pieces, Streamed, told_at_the_end
from utuple.doors.http.verbs import asking
from utuple.doors.http.verbs.body import JSON
from utuple.doors.visitors import Visitor
from utuple.runtime.clock import monotonic_s

OWN_METRICS = {
    "utuple_well": "1 if everything serves, an sCA server too.",
    "utuple_http_streams": "Streams that are open at this door.",
    "utuple_http_pages": "Consoles that are open at this door.",
    "utuple_http_dropped": "Clients dropped because they took nothing.",
}
"""The door's own, beside those of the cluster."""
_LOOK_S = 1.0
"""A page of somebody who may not look any longer ends after this at the latest."""
_METRICS = "text/plain; version=0.0.4; charset=utf-8"


def _json(value: object) -> Response:
    return Response(encoded(value), media_type=JSON, headers={"Cache-Control": "no-store"})


async def me(request: Request) -> Response:
    """Who asks, until when, and what he may do."""
    asking.check_known(request.query_params, ())
    visitor = visitor_of(request)
    if visitor is None:
        return _json({"secured": False})
    answer = await whoami(door_of(request).config.managers[0])
    return _json(
        {
            "secured": True,
            "identity": answer.identity,
            "name": visitor.identity.name,
            "role": visitor.identity.role.value,
            "until_us": visitor.caller.until_us,
            "allowed": answer.allowed,
        }
    )


async def status(request: Request) -> Response:
    asking.check_known(request.query_params, ())
    snapshot = await snapshot_of(door_of(request).config.managers)
    return _json(
        {
            "well": snapshot.is_well,
            "whole": snapshot.whole,
            "servers": [asdict(one) for one in snapshot.servers],
            "sca": [asdict(one) for one in snapshot.scas],
            "managers": [asdict(one) for one in snapshot.managers],
            "monitors": [asdict(one) for one in snapshot.monitors],
            "moves": [asdict(one) for one in snapshot.under_way],
            "advice": snapshot.advice,
            "missing": snapshot.missing,
            "certificates": [asdict(one) for one in snapshot.certificates],
        }
    )


async def table(request: Request) -> Response:
    asking.check_known(request.query_params, ())
    found = await table_of(door_of(request).config.managers)
    return _json({"whole": found.whole, "lines": [asdict(shown_line(one)) for one in found.lines]})


async def moves(request: Request) -> Response:
    asking.check_known(request.query_params, ("limit",))
    limit = asking.whole(request.query_params, "limit") or 100
    found = await snapshot_of(door_of(request).config.managers, brief=True)
    return _json({"moves": [asdict(one) for one in reversed(found.moves[-limit:])]})


async def readers(request: Request) -> Response:
    asking.check_known(request.query_params, ())
    found = await snapshot_of(door_of(request).config.managers)
    return _json({"readers": readers_part(found.servers)})


async def servers(request: Request) -> Response:
    asking.check_known(request.query_params, ())
    found = await snapshot_of(door_of(request).config.managers, brief=True)
    return _json({"servers": [asdict(one) for one in found.servers]})


async def pages(request: Request) -> Any:
    """The console's stream. `timeout` ends it, for whoever only wants one look."""
    door, query = door_of(request), request.query_params
    asking.check_known(query, ("timeout",))
    timeout_s = asking.seconds(query, "timeout")
    pieces = _until(door, visitor_of(request), timeout_s)
    return Streamed(door.streams, told_at_the_end(pieces), EVENT_STREAM)


async def _until(door: Door, visitor: Visitor | None, timeout_s: float | None) -> Pieces:
    """With a sign of life while nothing changes, for as long as who looks may."""
    import asyncio

    said_s = monotonic_s()
    ends_s = None if timeout_s is None else monotonic_s() + timeout_s
    yield b"retry: 1000\n\n"
    async with aclosing(door.observer.page(visitor)) as page:  # type: ignore[type-var]
        waiting: asyncio.Task[bytes] | None = None
        try:
            while True:
                left_s = door.limits.heartbeat_s if ends_s is None else ends_s - monotonic_s()
                if left_s <= 0:
                    return
                waiting = waiting or asyncio.create_task(_next(page))
                done, _ = await asyncio.wait({waiting}, timeout=min(left_s, _LOOK_S))
                if visitor is not None and door.reception is not None:
                    error = door.reception.why_void(visitor)
                    if error is not None:
                        raise error
                if done:
                    piece, waiting = waiting.result(), None
                    said_s = monotonic_s()
                    yield piece
                elif monotonic_s() - said_s >= door.limits.heartbeat_s:
                    said_s = monotonic_s()
                    yield b": alive\n\n"
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)


async def _next(page: AsyncIterator[bytes]) -> bytes:
    return await anext(page)


# --- for other programs ----------------------------------------------------------------------------


async def metrics(request: Request) -> Response:
    """The cluster's, as `utuple metrics` has them, and the door's own."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import GaugeMetricFamily

    from utuple.admin.metrics import families_of

    asking.check_known(request.query_params, ())
    door = door_of(request)
    is_well = False
    families: list[Any] = []
    try:
        snapshot = await snapshot_of(door.config.managers)
        is_well = snapshot.is_well
        families += families_of(snapshot)
    except utuple.UTupleError:
        """A cluster that does not answer is a figure, too."""
    own = (is_well, door.streams.open, door.observer.pages, door.streams.dropped)
    families += [
        GaugeMetricFamily(name, what, value=float(value))
        for (name, what), value in zip(OWN_METRICS.items(), own, strict=True)
    ]
    registry = CollectorRegistry()
    registry.register(_Given(families))
    return Response(generate_latest(registry), headers={"Content-Type": _METRICS})


class _Given:
    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> list[Any]:
        return self._families


async def healthz(request: Request) -> Response:
    """This program answers."""
    return PlainTextResponse("ok\n")


async def readyz(request: Request) -> Response:
    """The cluster behind it takes events."""
    door = door_of(request)
    if door.reception is not None:  # it may not look at the table itself
        if not door.reception.follower.is_heard:
            raise Problem(503, "Not ready", "no assignment manager answers this door")
        return PlainTextResponse("ready\n")
    found = await table_of(door.config.managers)
    if not found.whole:
        raise Problem(503, "Not ready", "the assignment table is not whole: see `utuple status`")
    return PlainTextResponse("ready\n")
