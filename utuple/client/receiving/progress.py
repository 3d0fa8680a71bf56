"""How far a formal has come: what it has received, acknowledged and seen, and what a server may send ahead. Pure.

received      per origin: the highest seq that came; a stream goes on after it
acknowledged  per origin: the highest seq such that everything delivered at or below it was
              acknowledged; what a reader that starts again goes on after
seen          ids, to drop repeats: a uTuple may come again after a reconnect, a change of epoch, or
              when it was registered at two servers

The origin is the server an EA was registered at, whoever delivers it. All that an origin has of one key is
at one server at a time: at itself, or after a drain at its heir, and each delivers it in seq order. So one
position an origin says everything, to whichever server holds its rows now.

Some deliveries cannot be found again by origin and seq: stored matches of a member that is off come without
a seq, and a CA has another seq at every member. Those are followed by id until they are acknowledged: when
one comes again, its place there counts as done when the application says so and not before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import repeat

from utuple.client.receiving.repeats import Seen

_TIDY_EVERY = 1_024


class OriginProgress:
    """One origin's deliveries on their way through the application."""

    def __init__(self, limit: int) -> None:
        self.position = 0
        self._limit = limit
        self._waiting: list[int] = []
        self._head = 0
        self._done: set[int] = set()
        self._counted = 0
        self._counted_to = 0

    @property
    def outstanding(self) -> int:
        return len(self._waiting) - self._head - len(self._done) + self._counted

    def delivered(self, seq: int) -> None:
        if self._counted or len(self._waiting) - self._head >= self._limit:
            self._counted_to = max(self._counted_to, seq)
            self._counted += 1
        elif not self._waiting or seq > self._waiting[-1]:
            self._waiting.append(seq)
        else:  # the same origin's rows may come from two servers
            insort(self._waiting, seq, lo=self._head)

    def all_delivered(self, seqs: Sequence[int]) -> None:
        """In their order, the usual case: they come after everything that is waited for."""
        waiting = self._waiting
        fit = not self._counted and len(waiting) - self._head + len(seqs) <= self._limit
        if fit and (not waiting or seqs[0] > waiting[-1]) and seqs == sorted(seqs):
            waiting.extend(seqs)
        else:
            for seq in seqs:
                self.delivered(seq)

    def is_new(self, seq: int) -> bool:
        """Neither acknowledged nor waited for."""
        return seq > self.position and not self._counted and not self._follows(seq)

    def repeated(self, seq: int) -> None:
        """The application has this uTuple by another way: nothing is left to do for this seq."""
        if self.is_new(seq):
            self.delivered(seq)
            self.acknowledge(seq)

    def acknowledge(self, seq: int) -> None:
        """Of something delivered, once."""
        if self._counted and not self._follows(seq):
            self._counted -= 1
        else:
            self._done.add(seq)
        self._advance()

    def acknowledge_all(self, seqs: Sequence[int]) -> None:
        """In their order, the usual case: they are what has waited longest."""
        end = self._head + len(seqs)
        if seqs and not self._done and self._waiting[self._head : end] == seqs:
            self._head = end
            self.position = max(self.position, seqs[-1])
            self._advance()
        else:
            for seq in seqs:
                self.acknowledge(seq)

    def _follows(self, seq: int) -> bool:
        at = bisect_left(self._waiting, seq, lo=self._head)
        return at < len(self._waiting) and self._waiting[at] == seq

    def _advance(self) -> None:
        waiting, head = self._waiting, self._head
        while head < len(waiting) and waiting[head] in self._done:
            self._done.discard(waiting[head])
            self.position = max(self.position, waiting[head])
            head += 1
        self._head = head
        if head >= _TIDY_EVERY and head * 2 > len(waiting):
            del waiting[:head]
            self._head = 0
        if self._head == len(waiting) and not self._counted and self._counted_to > self.position:
            self.position = self._counted_to


class Progress:
    """One formal, at all its servers. With `unacknowledged=0` nothing is ever acknowledged."""

    def __init__(self, *, seen: Seen, unacknowledged: int, by_id: bool = False) -> None:
        """`by_id`: deliveries with a seq are followed by id (CAs); otherwise those without."""
        self._seen = seen
        self._number: int | None = seen.enter()
        self._limit = unacknowledged
        self._by_id = by_id
        self._before: dict[str, int] = {}
        """By origin, what was acknowledged before this opening, though the servers may not know."""
        self._received: dict[str, int] = {}
        self._carried: dict[str, set[str]] = {}
        """Server to the origins whose rows it has delivered."""
        self._origins: dict[str, OriginProgress] = {}
        self._open: dict[bytes, list[tuple[str, int]]] = {}
        """Delivered and not acknowledged, of those followed by id: where it is found."""

    def begin_after(self, positions: dict[str, int]) -> None:
        """This was acknowledged in an earlier opening: what comes of it is dropped, and the servers are told."""
        self._before = positions
        for origin, seq in positions.items():
            self._origins[origin] = OriginProgress(self._limit)
            self._origins[origin].position = seq

    def begin_without(self, ids: Sequence[bytes]) -> None:
        """These were acknowledged in an earlier opening, at some server: whoever delivers them, they are repeats."""
        if self._number is not None:
            self._seen.add_all(self._number, ids)

    def arrive(
        self, server: str, origin: str, seqs: Sequence[int], ids: Sequence[bytes]
    ) -> list[int] | None:
        """Which of these deliveries of one chunk are news; None: all of them, the usual case."""
        if self._number is None:
            return []
        news = self._seen.add_all(self._number, ids)
        if seqs:
            if self._before and min(seqs) <= (before := self._before.get(origin, 0)):
                new = range(len(seqs)) if news is None else news
                news = [at for at in new if seqs[at] > before]
            highest = max(seqs)
            if highest > self._received.get(origin, 0):
                self._received[origin] = highest
            carried = self._carried.get(server)
            if carried is None:
                self._carried[server] = {origin}
            elif origin not in carried:
                carried.add(origin)
        if self._limit:
            self._follow(origin, seqs, ids, news)
        return news

    def leave(self) -> None:
        """Nothing more is handed out or acknowledged, whatever comes."""
        if self._number is not None:
            self._seen.leave(self._number)
            self._number = None

    def _follow(
        self, origin: str, seqs: Sequence[int], ids: Sequence[bytes], news: Sequence[int] | None
    ) -> None:
        new = range(len(ids)) if news is None else news
        if self._by_id is bool(seqs):  # a simple command has no seq either, and is never kept
            for at in new[: max(0, self._limit - len(self._open))]:
                self._open[ids[at]] = []
        if not seqs:
            return
        track = self._origins.get(origin)
        if track is None:
            track = self._origins[origin] = OriginProgress(self._limit)
        if new:
            track.all_delivered(seqs if news is None else [seqs[at] for at in news])
        if self._by_id:
            for at in new:
                if ids[at] in self._open:
                    self._open[ids[at]].append((origin, seqs[at]))
        if news is not None:
            for at in set(range(len(seqs))).difference(news):
                self._repeated(track, origin, seqs[at], ids[at])

    def _repeated(self, track: OriginProgress, origin: str, seq: int, id_: bytes) -> None:
        places = self._open.get(id_)
        if places is None:
            track.repeated(seq)
        elif track.is_new(seq):
            track.delivered(seq)
            places.append((origin, seq))

    def acknowledge(self, origin: str, seq: int | None, id_: bytes) -> None:
        """Of something delivered, once."""
        places = self._open.pop(id_, None) if self._open else None
        if places is not None:
            for other, there in places:
                self._origins[other].acknowledge(there)
        elif seq is not None and self._limit:
            self._origins[origin].acknowledge(seq)

    def acknowledge_all(self, origin: str, seqs: Sequence[int], ids: Iterable[bytes]) -> None:
        """Some of one chunk, each once; without seqs, if they have none."""
        if seqs and self._limit and not self._open:
            self._origins[origin].acknowledge_all(seqs)
        else:
            for id_, seq in zip(ids, seqs or repeat(None), strict=False):
                self.acknowledge(origin, seq, id_)

    def has_received(self, server: str) -> bool:
        """Has it delivered something of its own?"""
        return server in self._carried.get(server, ())

    @property
    def own(self) -> set[str]:
        """Servers that have delivered something of their own."""
        return {server for server in self._carried if self.has_received(server)}

    def resume_after(self) -> dict[str, int]:
        """Positions for a stream to any server: it may hold an origin's rows now or get them later."""
        return dict(self._received)

    def acknowledged(self, server: str, departed: Collection[str] = ()) -> dict[str, int]:
        """Positions to tell this server: its own, those of rows it delivered for others, and those of
        members that have left the line, whose rows it may hold now."""
        carried = self._carried.get(server, ())
        return {
            origin: track.position
            for origin, track in self._origins.items()
            if track.position and (origin == server or origin in carried or origin in departed)
        }

    def unconfirmed(
        self, servers: Mapping[str, bool], departed: Collection[str] = ()
    ) -> dict[str, int]:
        """Positions that nobody was told, or that one of these servers was told and has not confirmed."""
        heard: set[str] = set()
        missed: set[str] = set()
        for server, has_confirmed in servers.items():
            (heard if has_confirmed else missed).update(self.acknowledged(server, departed))
        return {
            origin: track.position
            for origin, track in self._origins.items()
            if track.position and (origin in missed or origin not in heard)
        }


class Window:
    """How far a server may run ahead of the application at one link, in rows or in bytes. Counted from the Attach: what came
    before it (`earlier`) was not in its window, and is not given back by Taken."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.untaken = 0
        self.earlier = 0
        """Of those untaken: what came before the last Attach."""
        self.taken = 0
        """And not told yet."""

    def lost(self) -> None:
        self.earlier = self.untaken

    def begin(self) -> None:
        """An Attach is being sent."""
        self.taken, self.earlier = 0, self.untaken

    def delivered(self, new: int, repeats: int, *, is_up: bool) -> None:
        self.untaken += new
        if is_up:
            self.taken += repeats
        else:
            self.earlier += new

    def took(self, count: int) -> None:
        earlier = min(count, self.earlier)
        self.untaken -= count
        self.earlier -= earlier
        self.taken += count - earlier

    def tell(self) -> int:
        taken, self.taken = self.taken, 0
        return taken

    @property
    def is_half_taken(self) -> bool:
        return self.taken * 2 >= self.limit

    @property
    def is_half_empty(self) -> bool:
        return self.untaken * 2 <= self.limit


class Unflushed:
    """Positions that were acknowledged in a space and that no server has confirmed: its server was down when the reader
    was closed. The reader's next opening in this space is given them, so that what was acknowledged does not come again."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._positions: dict[bytes, dict[str, int]] = {}
        """By formal, the one that was closed last at the end; then by origin."""

    def keep(self, formal: bytes, positions: dict[str, int]) -> None:
        self._positions.pop(formal, None)
        if positions:
            self._positions[formal] = positions
        if len(self._positions) > self._limit:
            del self._positions[next(iter(self._positions))]

    def pop(self, formal: bytes) -> dict[str, int]:
        """They are the caller's now: to have them flushed, or kept again."""
        return self._positions.pop(formal, {})
