"""The door: one space for whoever comes in, and what it remembers between requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request

import utuple
from utuple.doors.http.config import Config
from utuple.doors.http.streaming import Streams
from utuple.doors.http.verbs.resuming import Readers

if TYPE_CHECKING:
    from utuple.doors.http.operators.observing import Observer
    from utuple.doors.http.operators.planning import Plans
    from utuple.doors.http.verbs.commands import Receipts
    from utuple.doors.http.verbs.live import Stream


class Door:
    def __init__(
        self,
        config: Config,
        space: utuple.Space,
        observer: Observer,
        receipts: Receipts,
        plans: Plans,
    ) -> None:
        self.config = config
        self.limits = config.limits
        self.space = space
        self.observer = observer
        self.receipts = receipts
        self.plans = plans
        self.streams = Streams(config.limits.streams, config.limits.stalled_s)
        self.readers = Readers(config.limits.readers_remembered)
        self.live: dict[str, set[Stream]] = {}
        """Streams that are open, by the reader's name."""
        self.requests = 0


def door_of(request: Request) -> Door:
    door: Door = request.app.state.door
    return door
