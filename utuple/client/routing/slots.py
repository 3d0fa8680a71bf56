"""Order: which member takes which addresses of a line, while the line stands still (decision 49). Pure.

Events that a program emits for one address one after the other go to one member, so that one writer's order is theirs, and every
watcher gets them in it. Addresses fall into slots by a hash. A slot is given to a member when it is first used: to the one that,
for how fast it works, has the fewest slots so far. It stays there until the line changes; only while that member fails or is
full does the slot go to another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from zlib import crc32

from utuple.client.routing.route import Standing, rendezvous

SLOTS = 256
"""So many that members of different speed get shares by their speed; so few that a line costs a client a few kilobytes."""


def slot_of(address: str) -> int:
    return crc32(address.encode()) % SLOTS


class Slots:
    """Of one line in one epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._member: dict[int, str] = {}
        self._held: Counter[str] = Counter()

    def member(
        self, address: str, names: Sequence[str], able: Sequence[str], known: Mapping[str, Standing]
    ) -> str:
        """`able` are those of `names` that do not fail just now."""
        slot = slot_of(address)
        chosen = self._member.get(slot)
        if chosen is None:
            chosen = self._member[slot] = self._lightest(able, known)
            self._held[chosen] += 1
        if chosen in able:
            return chosen
        return rendezvous(slot.to_bytes(2, "big"), able)

    def _lightest(self, names: Sequence[str], known: Mapping[str, Standing]) -> str:
        loads = {name: standing.load for name, standing in known.items()}
        rates = {n: load.service_per_s for n, load in loads.items() if load and load.service_per_s}
        usual = sum(rates.values()) / len(rates) if rates else 1.0
        return min(names, key=lambda name: (self._held[name] + 1) / rates.get(name, usual))
