"""An EF or CF that is open in this process: its links, what came, what was taken and acknowledged.

What a watch and a device have in common. It keeps the queue the application takes from; how it is registered is theirs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from uuid import UUID

from utuple.client.config import Config
from utuple.client.receiving.delivery import Chunk
from utuple.client.receiving.drops import Drops, Pace
from utuple.client.receiving.gathered import Acknowledged, Arrived
from utuple.client.receiving.hands import Hands
from utuple.client.receiving.link import Link
from utuple.client.receiving.progress import Progress
from utuple.client.receiving.sessions import Sessions, Settled
from utuple.errors import Closed, InvalidInput, ReaderReplaced, UTupleError
from utuple.model.terms import Terms
from utuple.model.utuple import Exact, UTuple
from utuple.runtime.clock import monotonic_s
from utuple.wire import utuple_pb2 as pb

_TELL_EVERY = 256
_INSISTS_OPENING, _INSISTS_OPEN = 2, 1
"""How often it answers a higher generation with a still higher one: while it opens, since its clock may be behind
that of whom it replaces; and once more, since what replaced it may be the late Attach of its own program's life
before. Of two that are there the later one stays."""


class Formal:
    def __init__(
        self,
        utuple: UTuple,
        *,
        named: bool,
        sessions: Sessions,
        config: Config,
        unknown_at: Callable[[Link], None],
    ) -> None:
        self.utuple = utuple
        self.named = named
        self._sessions = sessions
        self._config = config
        terms = utuple.terms or Terms()
        self.unknown_at = unknown_at
        self._is_device = isinstance(utuple.metadata, Exact)
        self._progress = Progress(
            seen=sessions.seen,
            unacknowledged=config.unacknowledged if named or self._is_device else 0,
            by_id=self._is_device,
        )
        self.begin_without = self._progress.begin_without
        self.next_attempt = sessions.next_attempt
        self.generation = 0
        self._insists = _INSISTS_OPENING
        self._leaving: asyncio.Task[None] | None = None
        self._links: dict[tuple[str, bool], Link] = {}
        self._members: set[str] = set()
        """uTupleServers it was ever attached to."""
        self._departed: set[str] = set()
        """Of those that have delivered something of their own: who is not in the line any more."""
        self._tell_every = 1 if terms.settles else max(1, min(_TELL_EVERY, config.window // 8))
        self._queue: deque[Arrived] = deque()
        self._queued_rows = self._queued_bytes = 0
        self._room = asyncio.Event()
        self._is_crowded = False
        """Somebody waits for room."""
        self._awaited: list[asyncio.Future[None]] = []
        self._error: UTupleError | None = None
        self.drops: Drops | None = None
        """Of a watch."""
        self._pace = Pace() if terms.absent.kind == "respond_within" else None
        self._hands = Hands(utuple.id, terms.redelivered_after_s) if terms.settles else None
        self._acknowledged = Acknowledged()

    # --- links ---------------------------------------------------------------------------------

    @property
    def servers(self) -> set[str]:
        """The uTupleServers it is attached to, or being attached."""
        return {server for server, is_sca in self._links if not is_sca}

    @property
    def scas(self) -> set[str]:
        return {server for server, is_sca in self._links if is_sca}

    async def claim(self) -> None:
        """Whoever is open here under the same id leaves first, acknowledgements flushed, or has undone a cancelled opening."""
        opened, id_ = self._sessions.open, self.utuple.id
        while (before := opened.get(id_)) is not None:
            await before.replace()
            if opened.get(id_) is before:
                del opened[id_]
        if self._error is not None:
            raise self._error
        opened[id_] = self
        self.generation = self._sessions.new_generation()
        self._progress.begin_after(self._sessions.unflushed.pop(id_))

    def attach(self, server: str, registration: pb.Columns | None = None) -> Link:
        """One that is over attaches nowhere: the link is gone at once."""
        place = (server, registration is not None)
        link = self._links.get(place)
        if link is None:
            link = self._new_link(server, registration)
            if self.is_over:
                link.gone.set()
            else:
                self._link(link)
        return link

    def _link(self, link: Link) -> None:
        self._links[link.server, link.is_sca] = link
        if not link.is_sca:
            self._members.add(link.server)
        self._sessions.attach(link)

    def _new_link(self, server: str, registration: pb.Columns | None = None) -> Link:
        return Link(self, server, self._config.window, self._config.window_bytes, registration)

    def attach_again(self, link: Link) -> None:
        link.attach_again()
        self._sessions.wake(link)

    def keep_to(self, members: Collection[str]) -> None:
        """The line has these members now. Links to others end; their rows, if they had any, are with one of these, which is
        told how far they had come, so that it gives what is left and no more. What they have delivered stays in the queue."""
        for server in sorted(self.servers.difference(members)):
            leaving = self._sessions.detach(self._links.pop((server, False)), cancel=False)
            self._sessions.finish(leaving, f"leaving {server}")
        gone = (self._progress.own & self._members).difference(members)
        news, self._departed = gone - self._departed, gone
        for link in self._links.values():
            after = self.resume_after(link)
            if after is not None and not link.is_sca and link.would_say_more(after, news):
                self.attach_again(link)
        self._tell()

    def keep_to_sca(self, server: str) -> None:
        """It is attached to this sCA server, and belongs to no other."""
        for place in [place for place in self._links if place[1] and place[0] != server]:
            self._sessions.move_away(self._links.pop(place))

    async def attached(self) -> None:
        """Until every link is up, or for as long as opening may wait. Raises what ended it meanwhile."""
        try:
            async with asyncio.timeout(self._config.attach_s):
                while waiting := [link for link in self._links.values() if not link.is_settled]:
                    await waiting[0].settled()
        except TimeoutError:
            pass
        if self._error is not None:
            raise self._error
        self._insists = min(self._insists, _INSISTS_OPEN)

    def drop(self, link: Link) -> None:
        """This server has no such formal, and none will be registered there."""
        self._links.pop((link.server, link.is_sca), None)
        self._sessions.drop(link)

    def leave(self, *, cancel: bool, settled: Settled | None = None) -> asyncio.Task[None]:
        """Detach everywhere, the last acknowledgements first, whoever waits for it or does not; where it may be registered
        and is not attached, too."""
        self.fail(Closed("this is closed"))
        if self._leaving is None:
            self._tell()
            leaving = self._leave(cancel=cancel, settled=settled)
            self._leaving = self._sessions.finish(leaving, "leaving")
        return self._leaving

    async def _leave(self, *, cancel: bool, settled: Settled | None) -> None:
        attached = self.servers
        links, self._links = list(self._links.values()), {}
        try:
            for server in sorted((await settled() if settled else set()) - attached):
                links.append(self._new_link(server))
                self._sessions.attach(links[-1])
            await asyncio.gather(*(self._sessions.detach(link, cancel=cancel) for link in links))
        finally:
            if not cancel:
                confirmed = {link.server: link.is_flushed for link in links if not link.is_sca}
                unflushed = self._progress.unconfirmed(confirmed, self._departed)
                self._sessions.unflushed.keep(self.utuple.id, unflushed)
            self._progress.leave()
            if self._sessions.open.get(self.utuple.id) is self:
                del self._sessions.open[self.utuple.id]

    async def replace(self) -> None:
        """By another of this space."""
        self._give_way()
        await asyncio.shield(self.leave(cancel=False))

    def replaced(self, generation: int) -> None:
        """By one of this generation, at some server: everywhere, or nowhere."""
        if self.is_over or generation <= self.generation:
            return
        if self._insists:
            self._insists -= 1
            self.generation = self._sessions.new_generation(generation)
            for link in self._links.values():
                link.insist()
                self._sessions.wake(link)
        else:
            self._give_way()
            self.leave(cancel=False)

    def _give_way(self) -> None:
        """What is queued was not acknowledged: the other is given it."""
        self.fail(ReaderReplaced(f"another now reads as {self.utuple.reader!r}"))
        self._queue.clear()

    # --- what comes ----------------------------------------------------------------------------

    def arrive(self, link: Link | None, chunk: Chunk, places: range) -> None:
        ids = chunk.ids[places.start : places.stop]
        seqs = chunk.seqs[places.start : places.stop]
        news: list[int] | None = []
        if self._hands is None:
            news = self._progress.arrive(chunk.server, chunk.origin, seqs, ids)
        new: Sequence[int] = places if news is None else [places[at] for at in news]
        if self._hands is not None:
            new = self._hands.arrive(chunk, places, monotonic_s())
        weight = chunk.weight_bytes(new)
        if link is not None:
            repeats_bytes = 0 if news is None else chunk.weight_bytes(places) - weight
            link.delivered(len(new), len(places) - len(new), weight, repeats_bytes)
            if news is not None:
                self._sessions.wake(link)
        if new:
            if self._queue and (self._is_device or (weight and 2 * len(new) < len(chunk))):
                # It is behind: it must not hold what came to others, who may not be.
                chunk, new = chunk.part(new), range(len(new))
            self._queue.append(Arrived(chunk, new, link, 1 if weight else self._tell_every))
            self._queued_rows += len(new)
            self._queued_bytes += weight
            if self._awaited:
                self._wake()

    @property
    def is_full(self) -> bool:
        config = self._config
        return self._queued_rows >= config.window or self._queued_bytes >= config.window_bytes

    async def has_room(self) -> None:
        """For what comes without a link's window: until the application is less than that behind."""
        while self.is_full:
            self._is_crowded = True
            self._room.clear()
            await self._room.wait()

    def fail(self, error: UTupleError) -> None:
        """Nothing more will come; what is queued may still be taken."""
        if self._error is None:
            self._error = error
        self._wake()

    # --- what the application does -------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        return self._error is not None

    def arrival(self) -> asyncio.Future[None]:
        """Done when something has come, which another may have taken by then. No coroutine, no event: with a
        thousand watches waiting for each message these would weigh more than it does."""
        if self._error is not None:
            raise self._error
        arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._awaited:  # some that wait may have given up
            self._awaited = [one for one in self._awaited if not one.done()]
        self._awaited.append(arrival)
        return arrival

    def _wake(self) -> None:
        for arrival in self._awaited:
            if not arrival.done():
                arrival.set_result(None)
        self._awaited.clear()

    @property
    def is_empty(self) -> bool:
        return not self._queue

    def take(self) -> tuple[Chunk, int] | None:
        """The next one; None if nothing is there."""
        if not self._queue:
            self.ask()
            return None
        arrived = self._queue[0]
        at = arrived.at
        arrived.at = at + 1
        self._hand_out(arrived.chunk, arrived.places[at : at + 1])
        if at + 1 == arrived.tell_at:
            self._took(arrived)
        return arrived.chunk, arrived.places[at]

    def take_some(self, most: int) -> tuple[Chunk, Sequence[int]]:
        """The next ones of one chunk, at most so many. There is at least one."""
        arrived = self._queue[0]
        places = arrived.places
        if arrived.at or len(places) > most:
            places = places[arrived.at : arrived.at + most]
        arrived.at += len(places)
        self._hand_out(arrived.chunk, places)
        if arrived.at >= arrived.tell_at:
            self._took(arrived)
        return arrived.chunk, places

    def ask(self) -> None:
        """The application asks for more: it is done with what it has, and what it waits for now is not its own work."""
        if self._pace is not None:
            self._pace.hand_out(0, monotonic_s())

    def _hand_out(self, chunk: Chunk, places: Sequence[int]) -> None:
        """Where terms were agreed it is noted."""
        if self._pace is not None:
            self._pace.hand_out(len(places), monotonic_s())
        if self._hands is not None:
            self._hands.hand_out([chunk.ids[place] for place in places], monotonic_s())

    def _took(self, arrived: Arrived) -> None:
        """Not for every one: that would cost more than handing it out."""
        at, before = arrived.at, arrived.told
        taken, arrived.told = at - before, at
        weight = arrived.chunk.weight_bytes(arrived.places[before:at])
        self._queued_rows -= taken
        self._queued_bytes -= weight
        if at == len(arrived.places):
            self._queue.popleft()
        else:
            arrived.tell_at = min(len(arrived.places), at + arrived.tell_every)
        if self._is_crowded:
            self._is_crowded = False
            self._room.set()
        if arrived.link is not None and arrived.link.took(taken, weight):
            self._sessions.wake(arrived.link)

    def acknowledge(self, chunk: Chunk, place: int, after_s: float | None = None) -> None:
        """Done; or with `after_s` refused, to come again."""
        if after_s is None and chunk is self._acknowledged.chunk:
            self._acknowledged.add(place)
            return
        self.check(chunk, place, after_s)
        if self._hands is not None:
            if self._hands.settle(chunk.ids[place], after_s):
                self._sessions.soon(self._tell)
        elif self.named or (self._is_device and chunk.seqs):
            if self._acknowledged.chunk is None:
                self._sessions.soon(self._tell)
            self._acknowledged.note_in(self._progress)
            self._acknowledged.begin(chunk, place)

    def check(self, chunk: Chunk, place: int, after_s: float | None = None) -> None:
        """Raises why it cannot be acknowledged, or refused, any more."""
        if self._leaving is not None:
            kind = ReaderReplaced if isinstance(self._error, ReaderReplaced) else Closed
            raise kind(f"{UUID(bytes=chunk.ids[place])} came to a watch or device that is closed")
        if after_s is not None and self._hands is None:
            rule = "needs a watch with ack_within_s=, attempts= or share=True"
            raise InvalidInput("nack", self.utuple.reader, rule)

    def _tell(self) -> None:
        self._acknowledged.note_in(self._progress)
        self._acknowledged.chunk = None
        for link in self._links.values():
            self._sessions.wake(link)

    # --- what a link asks ----------------------------------------------------------------------

    def resume_after(self, link: Link) -> dict[str, int] | None:
        """A stream that broke goes on after what came; a reader with a name, where it had acknowledged, as long as this
        server has delivered nothing of its own; without a name there is only the beginning."""
        if self._hands is not None or (self.named and not self._progress.has_received(link.server)):
            return None
        return self._progress.resume_after()

    def settlements(self, server: str) -> Iterable[pb.Settle]:
        return () if self._hands is None else self._hands.words(server)

    def pace(self, link: Link) -> pb.Pace | None:
        if self._pace is None:
            return None
        others = sum(other.arrival_per_s for other in self._links.values() if other is not link)
        return pb.Pace(others_per_s=others, service_per_s=self._pace.per_s)

    def dropped(self, message: pb.Dropped) -> None:
        """While its reader was away, at some server."""
        if self.drops is not None:
            self.drops.tell(message)

    def acknowledged(self, link: Link) -> dict[str, int]:
        if not (self.named or self._is_device) or self._hands is not None:
            return {}
        self._acknowledged.note_in(self._progress)
        return self._progress.acknowledged(link.server, self._departed)
