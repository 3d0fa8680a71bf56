"""What the program of a reader has in hand, where each delivery is settled by itself. It knows no clock.

A server gives a delivery again when it believes that its reader has lost it: the connection broke, or the acknowledgement was lost on
its way. Here it is known better. What is still in the program's hands, and was begun not too long ago, is not handed out once
more; what it has acknowledged is settled again. What it refused, or has had for longer than agreed, is.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from utuple.client.receiving.delivery import Chunk
from utuple.delivery.recent import RecentIds
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import pack

REMEMBERED = 50_000
"""Ids that were acknowledged, at least."""


@dataclass(slots=True)
class _Word:
    """What one server is to be told of one origin's deliveries."""

    done: list[int] = field(default_factory=list)
    refused: dict[float, list[int]] = field(default_factory=dict)
    """By the seconds after which they may come again."""


class Hands:
    def __init__(self, formal: bytes, within_s: float) -> None:
        self._formal = formal
        self._within_s = within_s
        self._queued: set[bytes] = set()
        self._held: dict[bytes, float] = {}
        """In the program's hands, since when."""
        self._done = RecentIds(REMEMBERED)
        self._places: dict[bytes, tuple[str, str, int]] = {}
        """Of what is queued or held: the server that gave it last, origin and seq."""
        self._words: dict[str, dict[str, _Word]] = {}

    def arrive(self, chunk: Chunk, places: Sequence[int], now_s: float) -> list[int]:
        """Which of these are to be handed out."""
        new = []
        for place in places:
            id_, where = chunk.ids[place], None
            if chunk.seqs:
                where = (chunk.server, chunk.origin, chunk.seqs[place])
                self._places[id_] = where
            if id_ in self._done:
                self._settle(id_)
            elif id_ not in self._queued and not self._is_in_hand(id_, now_s):
                self._queued.add(id_)
                new.append(place)
        return new

    def _is_in_hand(self, id_: bytes, now_s: float) -> bool:
        since_s = self._held.get(id_)
        return since_s is not None and now_s - since_s < self._within_s

    def hand_out(self, ids: Sequence[bytes], now_s: float) -> None:
        self._queued.difference_update(ids)
        self._held.update(dict.fromkeys(ids, now_s))

    def settle(self, id_: bytes, after_s: float | None) -> bool:
        """The program has done it, or refuses it. False: it was not in its hands any more."""
        if self._held.pop(id_, None) is None:
            return False
        if after_s is None:
            self._done.add([id_])
        self._settle(id_, after_s)
        return True

    def _settle(self, id_: bytes, after_s: float | None = None) -> None:
        place = self._places.pop(id_, None)
        if place is not None:  # one of lifetime 0 has none, and is not kept by anybody
            server, origin, seq = place
            word = self._words.setdefault(server, {}).setdefault(origin, _Word())
            if after_s is None:
                word.done.append(seq)
            else:
                word.refused.setdefault(after_s, []).append(seq)

    def words(self, server: str) -> Iterator[pb.Settle]:
        """What this server was not told yet."""
        for origin, word in self._words.pop(server, {}).items():
            if word.done:
                done = pack(array("Q", word.done))
                yield pb.Settle(id=self._formal, origin=origin, done=done)
            for after_s, seqs in word.refused.items():
                refused = pack(array("Q", seqs))
                yield pb.Settle(id=self._formal, origin=origin, refused=refused, after_s=after_s)
