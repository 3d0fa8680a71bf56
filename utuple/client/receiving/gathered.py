"""Deliveries that came together, and acknowledgements that leave together. Pure but for the chunks they name."""

from __future__ import annotations

from collections.abc import Sequence

from utuple.client.receiving.delivery import Chunk
from utuple.client.receiving.link import Link
from utuple.client.receiving.progress import Progress


class Arrived:
    """Deliveries that came together and were not all taken yet."""

    def __init__(
        self, chunk: Chunk, places: Sequence[int], link: Link | None, tell_every: int
    ) -> None:
        self.chunk = chunk
        self.places = places
        self.link = link
        self.tell_every = tell_every
        self.tell_at = min(len(places), tell_every)
        """When so many are taken, the link hears of it."""
        self.at = 0
        self.told = 0


class Acknowledged:
    """Acknowledged and not noted yet: places of one chunk. The servers will be told of them soon."""

    def __init__(self) -> None:
        self.chunk: Chunk | None = None
        self._places: list[int] = []

    def begin(self, chunk: Chunk, place: int) -> None:
        self.chunk, self._places = chunk, [place]

    def add(self, place: int) -> None:
        self._places.append(place)

    def note_in(self, progress: Progress) -> None:
        chunk, places = self.chunk, self._places
        if chunk is None or not places:
            return
        self._places = []
        first, end = places[0], places[-1] + 1
        if end - first == len(places) and places == list(range(first, end)):  # the usual case
            seqs, ids = chunk.seqs[first:end], chunk.ids[first:end]
        else:
            seqs = [chunk.seqs[place] for place in places] if chunk.seqs else []
            ids = [chunk.ids[place] for place in places]
        progress.acknowledge_all(chunk.origin, seqs, ids)
