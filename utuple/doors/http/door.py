"""The door: a space for whoever comes in, and what it remembers between requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.requests import Request

import utuple
from utuple.doors.http.config import Config
from utuple.doors.http.streaming import Streams
from utuple.doors.http.verbs.resuming import Readers
from utuple.doors.spaces import Spaces
from utuple.doors.visitors import Reception, Visitor
from utuple.security.own import ON_BEHALF
from utuple.security.owners import owned

if TYPE_CHECKING:
    from utuple.doors.http.operators.observing import Observer
    from utuple.doors.http.operators.planning import Plans
    from utuple.doors.http.verbs.commands import Receipts
    from utuple.doors.http.verbs.live import Stream

VISITOR = "utuple.visitor"
"""Of a request's scope: who makes it; None where nothing is secured."""


class Door:
    def __init__(
        self,
        config: Config,
        spaces: Spaces,
        reception: Reception | None,
        observer: Observer,
        receipts: Receipts,
        plans: Plans,
    ) -> None:
        """`reception` lets people in, where the cluster is secured."""
        self.config = config
        self.limits = config.limits
        self.spaces = spaces
        self.reception = reception
        self.observer = observer
        self.receipts = receipts
        self.plans = plans
        self.streams = Streams(config.limits.streams, config.limits.stalled_s)
        self.readers = Readers(config.limits.readers_remembered)
        self.live: dict[str, set[Stream]] = {}
        """Streams that are open, by the reader's name as it is kept."""
        self.requests = 0

    @asynccontextmanager
    async def acting_for(self, request: Request) -> AsyncIterator[None]:
        """As long as this lasts, what is asked of the cluster is asked for whoever makes the request."""
        visitor = visitor_of(request)
        if visitor is not None:
            ON_BEHALF.set(visitor.shown)
        async with self.spaces.lent(visitor) as space:
            request.state.space = space
            yield


def door_of(request: Request) -> Door:
    door: Door = request.app.state.door
    return door


def space_of(request: Request) -> utuple.Space:
    space: utuple.Space = request.state.space
    return space


def visitor_of(request: Request) -> Visitor | None:
    found: Visitor | None = request.scope.get(VISITOR)
    return found


def kept_name(request: Request, reader: str) -> str:
    """As servers keep this reader: it belongs to whoever makes the request."""
    visitor = visitor_of(request)
    return reader if visitor is None else owned(visitor.identity.name, reader)
