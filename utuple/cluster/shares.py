"""Which sCA server a device belongs to (section 3.2 of the paper), and who the sCA servers are. Pure.

Devices are shared out by a rendezvous hash of (subject, type, address): each name has a score with each device, and the
highest has it. So a server that joins takes only what it wins, and what one leaves behind is spread over all the others.

Who is there is known by the newest word about each name, which managers, sCA servers and clients pass on to each other:

    sca     it serves, and devices are shared out to it
    away    another sCA server found it silent; if it is alive it hears so, and says the contrary with a newer word
    left    it has said goodbye, or was removed
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

from utuple.cluster.line import ServerInfo
from utuple.model.key import device_key
from utuple.model.utuple import Family

SCA, AWAY, LEFT = "sca", "away", "left"
SCA_ROLES = (SCA, AWAY, LEFT)

_MASK = (1 << 64) - 1
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""Odd multipliers of splitmix64: every bit of what goes in reaches the high bits that are compared."""
_SHIFT = 29


class Shares:
    """Devices shared out among these names."""

    __slots__ = ("_seeds", "names")

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(set(names)))
        self._seeds = [(_seed(name), name) for name in self.names]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shares) and self.names == other.names

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"Shares({', '.join(self.names)})"

    def owner(self, family: Family, address: str) -> str:
        """There is at least one name."""
        if len(self._seeds) == 1:
            return self._seeds[0][1]
        key = device_key(family.subject, family.type, address)
        best, owner = -1, ""
        for seed, name in self._seeds:
            mixed = ((key ^ seed) * _FIRST) & _MASK
            score = ((mixed ^ (mixed >> _SHIFT)) * _SECOND) & _MASK
            if score > best:
                best, owner = score, name
        return owner

    def gives_no_more(self, name: str, before: Shares) -> bool:
        """Whatever this name has by these, it had by those: others were only added."""
        return name in before.names and set(before.names) <= set(self.names)


def shares_of(infos: Iterable[ServerInfo]) -> Shares:
    return Shares(info.name for info in infos if info.role == SCA)


def is_newer(info: ServerInfo, known: ServerInfo | None) -> bool:
    """The newest word about a name counts; of two of one instant the larger, so that all settle for the same."""
    return known is None or _newness(info) > _newness(known)


def hear_scas(known: dict[str, ServerInfo], heard: Iterable[ServerInfo]) -> list[ServerInfo]:
    """What is news of the sCA servers; it is known from here on."""
    news = []
    for info in heard:
        if info.role in SCA_ROLES and is_newer(info, known.get(info.name)):
            known[info.name] = info
            news.append(info)
    return news


def _newness(info: ServerInfo) -> tuple[int, str, str]:
    return info.since_us, info.address, info.role


@lru_cache(1024)
def _seed(name: str) -> int:
    """Shares are reckoned anew with every word from another sCA server, of the same few names."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
