"""Digests: whether two managers know the same, told in a few bytes. Pure.

The hash space is cut into buckets. A bucket's digest is the exclusive or of a mark of each peer that begins in it, so it does
not depend on the order in which they came; a whole ring's digest is that of all its buckets. Two managers compare the digests
of everything first, those of the buckets only if something differs, and then tell each other what lies in the buckets that differ.
In a steady state that costs the same with a hundred lines and with ten thousand.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import xor

from assignment_manager.peer import Peer
from utuple.cluster.line import ServerInfo
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section

BUCKETS = 256
"""With ten thousand lines some forty lie in one: what is told because of a single change stays small, and so do 256 digests."""
_WIDTH = HASH_SPACE // BUCKETS
_PACKED = struct.Struct(">QQQ")


def bucket_of(start: int) -> int:
    return start // _WIDTH


def bucket_section(bucket: int) -> Section:
    return Section(bucket * _WIDTH, (bucket + 1) * _WIDTH)


def _mark(peer: Peer) -> int:
    packed = _PACKED.pack(peer.section.start, peer.section.end - 1, peer.epoch)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "big")


def servers_digest(servers: Iterable[ServerInfo]) -> int:
    """Of what is known of every server."""
    total = 0
    for server in servers:
        text = f"{server.name}\0{server.address}\0{server.role}\0{server.since_us}".encode()
        total ^= int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
    return total


@dataclass(frozen=True, slots=True)
class Digest:
    """What one manager knows, in four numbers, as it tells another."""

    servers: int
    peers: int
    kept: int
    """Of the lines that both should hold, those it holds itself."""
    yours: int
    """And those it believes the other to hold: if that is wrong, the other says so."""

    def differs(self, heard: Digest) -> bool:
        """From the other's view of the ring, of itself, or of us?"""
        return (self.peers, self.kept, self.yours) != (heard.peers, heard.yours, heard.kept)


@dataclass(frozen=True, slots=True)
class Detail:
    """The same by bucket, but for the servers."""

    peers: tuple[int, ...]
    kept: tuple[int, ...]
    yours: tuple[int, ...]

    def differing(self, heard: Detail) -> tuple[int, ...]:
        columns = (self.peers, heard.peers, self.kept, heard.yours, self.yours, heard.kept)
        return tuple(
            bucket
            for bucket, (peers, their_peers, kept, believed, belief, their_kept) in enumerate(
                zip(*columns, strict=True)
            )
            if peers != their_peers or kept != believed or belief != their_kept
        )


class Digests:
    """Of what `content` gives for each bucket; computed anew only where something was touched."""

    def __init__(self, content: Callable[[int], Iterable[Peer]]) -> None:
        self._content = content
        self._digests = [0] * BUCKETS
        self._stale: set[int] = set()

    def touch(self, section: Section) -> None:
        """Something begins, ends or changes here; what was cut may begin again where the section ends."""
        last = bucket_of(min(section.end, HASH_SPACE - 1))
        self._stale.update(range(bucket_of(section.start), last + 1))

    def all(self) -> tuple[int, ...]:
        for bucket in self._stale:
            self._digests[bucket] = reduce(xor, map(_mark, self._content(bucket)), 0)
        self._stale.clear()
        return tuple(self._digests)

    @property
    def whole(self) -> int:
        return reduce(xor, self.all())


class Believed:
    """What another manager is believed to hold: as it said, and what was handed to it since."""

    def __init__(self) -> None:
        self._buckets: list[dict[int, Peer]] = [{} for _ in range(BUCKETS)]
        self._digests = [0] * BUCKETS

    def __iter__(self) -> Iterator[Peer]:
        return (peer for bucket in self._buckets for peer in bucket.values())

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def find(self, start: int) -> Peer | None:
        return self._buckets[bucket_of(start)].get(start)

    def add(self, peer: Peer) -> None:
        bucket = bucket_of(peer.section.start)
        known = self._buckets[bucket].get(peer.section.start)
        if known is not None:
            self._digests[bucket] ^= _mark(known)
        self._buckets[bucket][peer.section.start] = peer
        self._digests[bucket] ^= _mark(peer)

    def replace(self, buckets: Iterable[int], peers: Iterable[Peer]) -> None:
        """In these buckets it holds these and nothing else."""
        for bucket in buckets:
            self._buckets[bucket] = {}
            self._digests[bucket] = 0
        for peer in peers:
            self.add(peer)

    def only(self, is_wanted: Callable[[Peer], bool]) -> Believed:
        rest = Believed()
        for peer in filter(is_wanted, self):
            rest.add(peer)
        return rest

    def all(self) -> tuple[int, ...]:
        return tuple(self._digests)

    @property
    def whole(self) -> int:
        return reduce(xor, self._digests)
