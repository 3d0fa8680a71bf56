"""`GET /v1/events/live` and `GET /v1/devices/…/commands`: what comes, as server-sent events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

import utuple
from utuple.cli.verbs import parsing
from utuple.cli.verbs.json_lines import line_of_delivery
from utuple.doors.http.door import Door, door_of, kept_name, space_of
from utuple.doors.http.problems import encoded, invalid
from utuple.doors.http.streaming import EVENT_STREAM, Pieces, Streamed, event, told_at_the_end
from utuple.doors.http.verbs import asking
from utuple.doors.http.verbs.body import json_object
from utuple.doors.http.verbs.resuming import Sent, id_of, tag_of
from utuple.runtime.clock import monotonic_s

_BEGIN = b"retry: 1000\n\n"
_ALIVE = b": alive\n\n"
_ENDING = ("limit", "timeout")


async def live(request: Request) -> Any:
    """Stored matches, then live ones. With `reader` it can be gone on with."""
    door, query = door_of(request), request.query_params
    asked = asking.template_of(query, "reader", "lifetime", *_ENDING)
    reader = query.get("reader")
    asked |= _reader(request, reader)
    reader = kept_name(request, reader) if reader is not None else None
    sent = _resumed(door, request, reader)
    stream = Stream(door, request, space_of(request).watch(**asked), reader, sent)
    return stream.answer()


async def device(request: Request) -> Any:
    """A device takes commands while this stream is open."""
    door, query = door_of(request), request.query_params
    asking.check_known(query, ("position", "where", "reader", "lifetime", *_ENDING))
    names = ("subject", "type", "address")
    asked: dict[str, Any] = {name: request.path_params[name] for name in names}
    asked["where"] = parsing.parse_where(query.getlist("where"))
    if "position" in query:
        asked["position"] = parsing.parse_position(query["position"])
    reader = query.get("reader")
    asked |= _reader(request, reader)
    reader = kept_name(request, reader) if reader is not None else None
    sent = _resumed(door, request, reader)
    return Stream(door, request, space_of(request).serve(**asked), reader, sent).answer()


async def acknowledge(request: Request) -> Response:
    """A reader says how far it is without coming back."""
    door, reader = door_of(request), kept_name(request, request.path_params["reader"])
    said = await json_object(request, door.limits)
    asking.check_fields(said, ("id",))
    if not isinstance(said.get("id"), str):
        raise invalid("id", said.get("id"), "must be the id of an event, as the stream gave it")
    last = _event_of("id", said["id"], reader)
    noted = [stream.acknowledge(last) for stream in door.live.get(reader, ())]
    if not door.readers.of(reader).acknowledge(last, comes_again=not any(noted)):
        rule = "was not sent to this reader by this door, or is acknowledged already"
        raise invalid("id", said["id"], rule)
    return Response(status_code=204)


def _reader(request: Request, reader: str | None) -> dict[str, Any]:
    lifetime_s = asking.seconds(request.query_params, "lifetime")
    if lifetime_s is not None and reader is None:
        raise invalid("lifetime", lifetime_s, "needs reader: others live as long as their stream")
    asked: dict[str, Any] = {"reader": reader} if reader is not None else {}
    return asked | ({"lifetime_s": lifetime_s} if lifetime_s is not None else {})


def _resumed(door: Door, request: Request, reader: str | None) -> Sent | None:
    last = request.headers.get("last-event-id") or None
    if reader is None:
        if last is not None:
            raise invalid("Last-Event-ID", last, "needs reader: only a named reader can go on")
        return None
    sent = door.readers.of(reader)
    if last is not None:
        sent.acknowledge(_event_of("Last-Event-ID", last, reader))
    return sent


def _event_of(field: str, text: str, reader: str) -> UUID:
    tag, _, id_ = text.partition("-")
    try:
        found = UUID(hex=id_)
    except ValueError:
        raise invalid(field, text, "must be the id of an event, as the stream gave it") from None
    if tag != tag_of(reader):
        raise invalid(field, text, f"is an event of another reader than {reader!r}")
    return found


class Stream:
    """One client's deliveries."""

    def __init__(
        self,
        door: Door,
        request: Request,
        deliveries: utuple.Watch | utuple.Device,
        reader: str | None,
        sent: Sent | None,
    ) -> None:
        self._door = door
        self._deliveries = deliveries
        self._reader = reader
        self._sent = sent
        self._tag = tag_of(reader) if reader is not None else ""
        self._limit = asking.whole(request.query_params, "limit")
        self._timeout_s = asking.seconds(request.query_params, "timeout")
        self._unacknowledged: deque[tuple[float, utuple.Delivery]] = deque()
        """With when they were sent."""

    def answer(self) -> Streamed:
        return Streamed(
            self._door.streams, told_at_the_end(self._pieces()), EVENT_STREAM, stalled=self._stalled
        )

    def acknowledge(self, last: UUID) -> bool:
        """The client has those up to this one. False: this stream has not sent it, or its watch is over."""
        if not any(one.id == last for _, one in self._unacknowledged):
            return False
        is_last = False
        while not is_last:
            _, one = self._unacknowledged.popleft()
            is_last = one.id == last
            try:
                one.ack().close()
            except utuple.Closed:
                return False
        return True

    @property
    def _must_come_back(self) -> bool:
        """To say how far it is."""
        limits, held = self._door.limits, self._unacknowledged
        if not held:
            return False
        is_old = monotonic_s() - held[0][0] >= limits.unacknowledged_s
        return is_old or len(held) >= limits.unacknowledged

    def _stalled(self) -> None:
        if self._sent is not None:
            self._sent.was_dropped = True

    async def _pieces(self) -> Pieces:
        door, sent = self._door, self._sent
        async with self._deliveries as deliveries:
            if self._reader is not None:
                door.live.setdefault(self._reader, set()).add(self)
            try:
                yield _BEGIN + self._notice()
                if sent is not None:
                    sent.begin_again()
                async for piece in self._taken(deliveries):
                    yield piece
            finally:
                if self._reader is not None:
                    streams = door.live.get(self._reader, set())
                    streams.discard(self)
                    if not streams:
                        door.live.pop(self._reader, None)

    async def _taken(self, deliveries: utuple.Watch | utuple.Device) -> Pieces:
        limits, left, ends_s = self._door.limits, self._limit, self._ends_s()
        while left != 0 and not self._must_come_back:
            wait_s = self._wait_s(ends_s)
            if wait_s is None:
                return
            most = min(limits.take_events, limits.unacknowledged - len(self._unacknowledged))
            most = most if left is None else min(left, most)
            taken = await deliveries.take(most, timeout_s=wait_s)
            piece = bytearray()
            for one in self._events(taken):
                left = None if left is None else left - 1
                piece += one
                if len(piece) >= limits.write_bytes:
                    yield bytes(piece)
                    piece.clear()
            if piece:
                yield bytes(piece)
                await asyncio.sleep(0)  # a reader that is far behind leaves room for others
            elif not taken:
                yield _ALIVE

    def _notice(self) -> bytes:
        if self._sent is None or not self._sent.was_dropped:
            return b""
        self._sent.was_dropped = False
        said = {
            "title": "Dropped",
            "detail": f"your last connection was cut: it took nothing for {self._door.limits.stalled_s:g} s",
        }
        return event(encoded(said), name="notice")

    def _ends_s(self) -> float | None:
        return None if self._timeout_s is None else monotonic_s() + self._timeout_s

    def _wait_s(self, ends_s: float | None) -> float | None:
        """How long to wait for the next; None: the time is over."""
        heartbeat_s = self._door.limits.heartbeat_s
        if ends_s is None:
            return heartbeat_s
        left_s = ends_s - monotonic_s()
        return min(heartbeat_s, left_s) if left_s > 0 else None

    def _events(self, taken: list[utuple.Delivery]) -> Iterator[bytes]:
        now_s = monotonic_s()
        for one in taken:
            if self._sent is None:
                yield event(line_of_delivery(one))
                continue
            if self._sent.is_repeat(one.id):
                one.ack().close()
                continue
            self._unacknowledged.append((now_s, one))
            self._sent.write(one.id)
            yield event(line_of_delivery(one), id=id_of(self._tag, one.id))
