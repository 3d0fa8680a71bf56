"""A peer: the place of one section's line in the DHT. Every manager knows all peers; their lines are
with their holders. As many peers as lines. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from utuple.cluster.line import FIRST_EPOCH, Line
from utuple.cluster.newest import Newest
from utuple.errors import InvalidInput
from utuple.model.section import Section


@dataclass(frozen=True, slots=True)
class Peer:
    section: Section
    epoch: int

    def __post_init__(self) -> None:
        if self.epoch < FIRST_EPOCH:
            raise InvalidInput("epoch", self.epoch, f"must be at least {FIRST_EPOCH}")

    def within(self, section: Section) -> Peer:
        return self if section == self.section else replace(self, section=section)


def peer_of(line: Line) -> Peer:
    return Peer(line.section, line.epoch)


class Peers(Newest[Peer]):
    """The ring of all peers: the highest epoch heard of anywhere, also where its line is not held."""

    def current(self, line: Line) -> list[Line]:
        """The parts of a line that no newer peer lies over; the whole of it as a rule."""
        if self.find(line.section.start) == peer_of(line):
            return [line]
        return [
            line.within(
                Section(
                    max(peer.section.start, line.section.start),
                    min(peer.section.end, line.section.end),
                )
            )
            for peer in self.overlapping(line.section)
            if peer.epoch == line.epoch
        ]
