"""Concurrent registrations to one server leave as one batch.

Whatever has queued while the calls before were on their way is the next batch: no timers, so a lonely
event leaves at once and a flood leaves in large calls. Every queue has a limit, and beyond it the caller
waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from utuple.client.config import Config
from utuple.client.transport import Transport
from utuple.errors import Closed, OutcomeUnknown, Overloaded, UTupleError
from utuple.model.columns import Columns, concatenate
from utuple.model.utuple import Family, UTuple
from utuple.runtime.logs import Log
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire, templated_to_wire

_log = Log("utuple.client.batcher")

_ROW_BYTES = 80
"""What a row weighs beside its payload: id, time, position, lifetime, address."""

Refusals = Sequence[pb.Refusal]
Answered = Callable[[str, pb.RegisterAnswer], None]
"""Called with the server's name and each of its answers, for the lines and the load in it."""


@dataclass(slots=True, eq=False)
class Parcel:
    """What one caller sends to one server, by one epoch for each family."""

    epochs: dict[Family, int]
    retry: bool
    events: Columns | None = None
    devices: Columns | None = None
    template: UTuple | None = None
    sent: bool = False
    answer: asyncio.Future[Refusals] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def rows(self) -> int:
        return sum(len(part) for part in (self.events, self.devices) if part) + bool(self.template)

    @property
    def size_bytes(self) -> int:
        parts = [part for part in (self.events, self.devices) if part]
        return sum(sum(map(len, part.payloads)) + _ROW_BYTES * len(part) for part in parts)

    def goes_with(self, other: Parcel) -> bool:
        """One call says for all of it whether it is a retry, and has one epoch for each family."""
        if self.retry is not other.retry:
            return False
        return all(other.epochs.get(name, epoch) == epoch for name, epoch in self.epochs.items())


class Batcher:
    def __init__(
        self,
        transport: Transport,
        address_of: Callable[[str], str],
        answered: Answered,
        config: Config,
    ) -> None:
        self._transport = transport
        self._address_of = address_of
        self._answered = answered
        self._config = config
        self._lanes: dict[str, Lane] = {}

    def in_flight(self, names: Sequence[str]) -> dict[str, int]:
        """Rows queued or on their way, for the choice among servers."""
        return {name: self._lanes[name].rows for name in names if name in self._lanes}

    async def send(self, server: str, parcel: Parcel, deadline_s: float) -> Refusals:
        """The refusals among this parcel's rows. Raises Overloaded or Unavailable if it surely was not
        registered, OutcomeUnknown if it was sent and no answer came."""
        lane = self._lanes.get(server)
        if lane is None:
            lane = self._lanes[server] = Lane(server, self._call, self._config)
        try:
            async with asyncio.timeout_at(deadline_s):
                await lane.put(parcel)
                return await parcel.answer
        except TimeoutError:
            if parcel.sent:
                raise OutcomeUnknown(f"{server} did not answer in time") from None
            raise Overloaded(f"more is waiting for {server} than it can take in time") from None

    async def _call(self, server: str, parcels: Sequence[Parcel]) -> pb.RegisterAnswer:
        address = self._address_of(server)
        answer = await self._transport.register(
            address, request_of(parcels), self._config.timeout_s
        )
        self._answered(server, answer)
        return answer

    async def close(self) -> None:
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))


class Lane:
    """The way to one server."""

    def __init__(
        self,
        server: str,
        call: Callable[[str, Sequence[Parcel]], asyncio.Future[pb.RegisterAnswer]]
        | Callable[..., object],
        config: Config,
    ) -> None:
        self._server = server
        self._call = call
        self._config = config
        self._queue: deque[Parcel] = deque()
        self._room = asyncio.Condition()
        self._calls: set[asyncio.Task[None]] = set()
        self._queued_bytes = 0
        self._closed = False
        self.rows = 0
