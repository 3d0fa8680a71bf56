"""What a formal has received, acknowledged and seen. Pure.

received      per server and origin: the highest seq that came; a stream goes on after it
acknowledged  per origin: the highest seq such that everything delivered at or below it was
              acknowledged; what a reader that starts again goes on after
seen          ids, to drop repeats: a uTuple may come again after a reconnect, a change of epoch, or
              when it was registered at two servers
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence


class SeenIds:
    """The ids last seen, in two halves: when the younger is full the older is forgotten, so that at
    least half of `limit` are always remembered."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def add(self, id_: bytes) -> bool:
        """True if it is new."""
        if id_ in self._young:
            return False
        is_new = id_ not in self._old
        if len(self._young) >= self._half:
            self._old, self._young = self._young, set()
        self._young.add(id_)
        self._old.discard(id_)
        return is_new


class Acknowledged:
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

    def repeated(self, seq: int) -> None:
        """The application has this uTuple by another way: nothing is left to do for this seq."""
        if seq > self.position and not self._counted and not self._follows(seq):
            self.delivered(seq)
            self.acknowledge(seq)

    def acknowledge(self, seq: int) -> None:
        """Of something delivered, once."""
        if self._counted and not self._follows(seq):
            self._counted -= 1
        else:
            self._done.add(seq)
        self._advance()

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
        if head > 1024 and head * 2 > len(waiting):
            del waiting[:head]
            self._head = 0
        if self._head == len(waiting) and not self._counted and self._counted_to > self.position:
            self.position = self._counted_to


class Order:
    """One formal, at all its servers."""

    def __init__(self, *, seen_ids: int, unacknowledged: int) -> None:
        self._seen = SeenIds(seen_ids)
        self._limit = unacknowledged
        self._received: dict[str, dict[str, int]] = {}
        self._origins: dict[str, Acknowledged] = {}

    def arrive(
        self, server: str, origin: str, seqs: Sequence[int], ids: Iterable[bytes]
    ) -> list[int]:
        """The rows of a chunk that are news. Rows without a seq (stored matches of a member that is
        off) are only looked at for repeats."""
        news = [row for row, id_ in enumerate(ids) if self._seen.add(id_)]
        if seqs:
            received = self._received.setdefault(server, {})
            received[origin] = max(received.get(origin, 0), *seqs)
            track = self._origins.get(origin)
            if track is None:
                track = self._origins[origin] = Acknowledged(self._limit)
            for row in news:
                track.delivered(seqs[row])
            if len(news) < len(seqs):
                for row in set(range(len(seqs))).difference(news):
                    track.repeated(seqs[row])
        return news

    def acknowledge(self, origin: str, seq: int) -> None:
        self._origins[origin].acknowledge(seq)

    def has_received(self, server: str) -> bool:
        return server in self._received

    def resume_after(self, server: str, departed: Iterable[str] = ()) -> dict[str, int]:
        """Positions for a stream to this server: what came from it, and what members that have left
        the line delivered themselves, because it may hold their rows now."""
        own = self._received.get(server, {})
        gone = {name: self._received.get(name, {}).get(name, 0) for name in departed}
        positions = {name: max(own.get(name, 0), gone.get(name, 0)) for name in {*own, *gone}}
        return {origin: seq for origin, seq in positions.items() if seq}

    def acknowledged(self, server: str, departed: Iterable[str] = ()) -> dict[str, int]:
        """Positions to tell this server: its own, those of rows it delivered for others, and those of
        members that have left the line, whose rows it may hold now."""
        origins = {server, *self._received.get(server, {}), *departed}
        found = ((origin, self._origins[origin]) for origin in origins if origin in self._origins)
        return {origin: track.position for origin, track in found if track.position}
