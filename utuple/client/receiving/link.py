"""One formal at one server: what has to be told there, and how far the server may run ahead.

A link has no network. A session asks it what to send (`outgoing`) whenever something may have changed, and
tells it what came. The server may be `window` deliveries, or `window_bytes` of large ones, ahead of the application,
counted from the Attach; every Taken gives back what the application took of those. A stream that broke is attached again only when
half of what came before it broke is taken, so that no more than one and a half windows are ever held. A link
that is up may be attached again to say where to go on; what comes until the server has answered that still
belongs to before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from utuple.client.receiving.delivery import Chunk
from utuple.client.receiving.progress import Window
from utuple.errors import UTupleError
from utuple.model.utuple import Exact, UTuple
from utuple.wire import utuple_pb2 as pb


class Receiver(Protocol):
    """The formal a link belongs to: a watch or a device."""

    utuple: UTuple
    generation: int
    """Of its opening: higher than that of whoever read under its name before."""

    def arrive(self, link: Link, chunk: Chunk, places: range) -> None: ...

    def resume_after(self, link: Link) -> dict[str, int] | None:
        """Positions the stream goes on after; None: after what was acknowledged."""

    def acknowledged(self, link: Link) -> dict[str, int]: ...

    def settlements(self, server: str) -> Iterable[pb.Settle]:
        """What this server was not told yet, where each delivery is settled by itself."""

    def pace(self, link: Link) -> pb.Pace | None:
        """What its drop policy needs to know at this server, if it has such a one."""

    def dropped(self, message: pb.Dropped) -> None:
        """What a server says of the time the reader was away."""

    @property
    def is_full(self) -> bool:
        """A window is untaken."""

    def unknown_at(self, link: Link) -> None:
        """The server has no such formal: register it there again, then attach."""

    def next_attempt(self) -> int:
        """A number higher than that of any attachment before."""

    def replaced(self, generation: int) -> None:
        """One of this generation holds it at a server."""

    def fail(self, error: UTupleError) -> None: ...


class Link:
    def __init__(
        self,
        receiver: Receiver,
        server: str,
        window: int,
        window_bytes: int,
        registration: pb.Columns | None = None,
    ) -> None:
        self.receiver = receiver
        self.id = receiver.utuple.id
        self.server = server
        self.is_sca = registration is not None
        self.is_device = isinstance(receiver.utuple.metadata, Exact)
        self.up = asyncio.Event()
        """Attached: deliveries flow. `_is_up` says the same, and is asked for every message."""
        self._is_up = False
        self._is_answered = False
        """This stream has answered an Attach of ours: what comes before that is for one who was replaced."""
        self.generation = 0
        """Of the last Attach."""
        self.arrival_per_s = 0.0
        """Matches at this server, as it said when it was attached last."""
        self.gone = asyncio.Event()
        """Nothing more is said or heard here: detached, dropped or given up."""
        self._is_flushed = False
        self._registration = registration
        self._rows = Window(window)
        self._bytes = Window(window_bytes)
        self._asked = False
        self._resumed: dict[str, int] = {}
        """The positions of the last Attach."""
        self._told: dict[str, int] = {}
        self._leaving: pb.Detach | None = None
        terms = receiver.utuple.terms
        self._tells_each = terms is not None and terms.settles
        """The server counts from when a delivery is taken how long it may take."""
        self._moves = False
        """It leaves for another sCA server: what was sent here before the answer to its goodbye is still taken."""
        self._insists = False

    @property
    def is_leaving(self) -> bool:
        return self._leaving is not None

    @property
    def cancels(self) -> bool:
        """It leaves, and the formal is to be forgotten."""
        return self._leaving is not None and self._leaving.cancel

    @property
    def may_confirm(self) -> bool:
        """The server listens to what this says of commands that came."""
        return self._is_up or (self._moves and self._is_answered)

    @property
    def is_flushed(self) -> bool:
        """The server has the last acknowledgements, or does not know the formal any more."""
        return self._is_flushed

    @property
    def is_receiving(self) -> bool:
        """An sCA server knows no window. What it sends to a program that does not take its commands is dropped here when
        a window is full of them, and is not confirmed: so its sender is told, and may send it again."""
        if not self._is_answered or (self.is_leaving and not self._moves):
            return False
        return not (self.is_sca and self.receiver.is_full)

    @property
    def is_settled(self) -> bool:
        return self.up.is_set() or self.gone.is_set()

    async def settled(self) -> None:
        """Until it is up or gone."""
        waits = [asyncio.create_task(event.wait()) for event in (self.up, self.gone)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    # --- what happens --------------------------------------------------------------------------

    def attached(self, *, unknown: bool) -> None:
        if unknown:
            if self.is_leaving:
                self.flushed()
            else:
                self.receiver.unknown_at(self)
            return
        self._is_up = self._is_answered = True
        self.up.set()

    def flushed(self) -> None:
        self._is_flushed = True
        self.gone.set()

    def lost(self) -> None:
        """The stream broke: whatever was not answered is told again on the next one."""
        self._is_answered = False
        self.attach_again()

    def attach_again(self) -> None:
        self._asked = False
        self._rows.lost()
        self._bytes.lost()
        self._told = {}
        self._is_up = False
        self.up.clear()

    def insist(self) -> None:
        """Attached again, though much may be untaken: while it waits for the application another reads."""
        self.attach_again()
        self._insists = True

    def would_say_more(self, after: dict[str, int], origins: Collection[str]) -> bool:
        """Attached again, it would go on further in one of these origins."""
        return any(after.get(name, 0) > self._resumed.get(name, 0) for name in origins)

    def delivered(
        self, rows: int, repeats: int, weight_bytes: int = 0, repeats_bytes: int = 0
    ) -> None:
        self._rows.delivered(rows, repeats, is_up=self._is_up)
        if weight_bytes or repeats_bytes:
            self._bytes.delivered(weight_bytes, repeats_bytes, is_up=self._is_up)

    def took(self, rows: int, weight_bytes: int = 0) -> bool:
        """The application took so many; True when the server should hear of it."""
        self._rows.took(rows)
        self._bytes.took(weight_bytes)
        return self._may_tell or (not self._asked and self._may_ask)

    @property
    def _may_tell(self) -> bool:
        if self._tells_each and self._rows.taken:
            return True
        return self._rows.is_half_taken or self._bytes.is_half_taken

    @property
    def _may_ask(self) -> bool:
        return self._rows.is_half_empty and self._bytes.is_half_empty

    def leave(self, *, cancel: bool, moves: bool = False) -> None:
        self._leaving = pb.Detach(id=self.id, cancel=cancel)
        self._moves = moves

    # --- what to send --------------------------------------------------------------------------

    def acknowledging(self) -> list[tuple[str, int]]:
        """Positions that are news to the server, by origin. Ask for them before `outgoing`, which may end it."""
        if not self._is_up:
            return []
        told, self._told = self._told, self.receiver.acknowledged(self)
        return [at for at in self._told.items() if told.get(at[0]) != at[1]]

    def settling(self) -> Iterable[pb.Settle]:
        """After what `outgoing` gives, which says that they were taken."""
        return self.receiver.settlements(self.server) if self._is_up else ()

    @property
    def has_more_to_say(self) -> bool:
        """Anything `outgoing` would give."""
        return not self._asked or self._may_tell or self._leaving is not None

    def outgoing(self) -> Iterator[pb.FromReader]:
        if not self._asked and (self._may_ask or self.is_leaving or self._insists):
            self._asked, self._insists = True, False
            self._rows.begin()
            self._bytes.begin()
            yield pb.FromReader(attach=self._attach())
        if not self._is_up:
            return
        if self._may_tell:
            rows, weight = self._rows.tell(), self._bytes.tell()
            said = pb.Taken(id=self.id, count=rows, weight_bytes=weight, generation=self.generation)
            if (pace := self.receiver.pace(self)) is not None:
                said.pace.CopyFrom(pace)
            yield pb.FromReader(taken=said)
        if self._leaving is not None:  # what is settled is said before the goodbye
            yield from (pb.FromReader(settle=settle) for settle in self.settling())
        if self._leaving is not None:
            self._leaving.generation = self.generation
            if (pace := self.receiver.pace(self)) is not None:
                self._leaving.pace.CopyFrom(pace)
            yield pb.FromReader(detach=self._leaving)
            self._is_up = False
            self.up.clear()

    def _attach(self) -> pb.Attach:
        after = self.receiver.resume_after(self)
        self._resumed = after or {}
        self.generation = self.receiver.generation
        return pb.Attach(
            id=self.id,
            device=self.is_device,
            reader=self.receiver.utuple.reader or "",
            resume=after is not None,
            positions=_positions(after or {}),
            window=self._rows.limit,
            window_bytes=self._bytes.limit,
            registration=self._registration,
            generation=self.generation,
            attempt=self.receiver.next_attempt(),
        )


def _positions(positions: dict[str, int]) -> list[pb.Position]:
    return [pb.Position(origin=origin, seq=seq) for origin, seq in sorted(positions.items())]
