"""How stored commands stand: which devices have each, and which have acknowledged it. Pure.

Kept while the command lives, and a minute longer: how it stood at its end is asked then. A device's acknowledgement is a
position, and a position that goes past a command after its end says nothing of it: the device may never have been given it.
What a device has stays so when its CF is gone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from sortedcontainers import SortedDict

from utuple.store.contract import NO_SEQ, StoredTemplate

KEPT_US = 60_000_000
"""After the end: whoever waits for that asks at once, and again if no answer comes."""
MOST_KEPT = 100_000
"""Commands, and devices that have them: some megabytes."""


@dataclass(slots=True)
class Standing:
    stored: StoredTemplate
    is_whole: bool
    """Kept since the command came here: who is not said to have it was not given it here."""
    have_it: dict[bytes, str] = field(default_factory=dict)
    """CFs whose programs have it, with their addresses."""
    acknowledged: set[bytes] = field(default_factory=set)
    passed: set[bytes] = field(default_factory=set)
    """CFs that went past it after its end."""


class Standings:
    def __init__(self) -> None:
        self._standings: OrderedDict[bytes, Standing] = OrderedDict()
        self._by_seq: SortedDict[int, bytes] = SortedDict()
        self._over: OrderedDict[bytes, int] = OrderedDict()
        """Those whose end has come: until when they are kept."""
        self._whole_after = 0
        self._weight = 0

    def take_over(self, seq: int) -> None:
        """The store was opened: of what it has up to here, nobody remembers who was given it."""
        self._whole_after = max(self._whole_after, seq)

    def begin(self, stored: StoredTemplate) -> Standing | None:
        """It is stored, or comes again. None: it has no lifetime."""
        id_ = stored.packed.id
        standing = self._standings.get(id_)
        if standing is not None and standing.stored.seq == stored.seq:
            standing.stored = stored
            return standing
        if stored.seq == NO_SEQ:
            return None
        self.drop(id_)
        standing = Standing(stored, stored.seq > self._whole_after)
        self._standings[id_], self._by_seq[stored.seq] = standing, id_
        self._weigh(1)
        return standing

    def look(self, id_: bytes, stored: StoredTemplate | None, now_us: int) -> Standing | None:
        """Of a command that is stored, or was until lately."""
        standing = self._standings.get(id_)
        if standing is None and stored is not None and stored.expires_us > now_us:
            return self.begin(stored)
        is_forgotten = standing is not None and standing.stored.expires_us + KEPT_US <= now_us
        return None if is_forgotten else standing

    def get(self, id_: bytes) -> Standing | None:
        return self._standings.get(id_)

    def handed(self, formal: bytes, address: str, command: bytes) -> None:
        """Its program has it."""
        standing = self._standings.get(command)
        if standing is not None and formal not in standing.have_it:
            standing.have_it[formal] = address
            self._weigh(1)

    def advance(self, formal: bytes, after: int, upto: int, now_us: int) -> None:
        """A device has acknowledged what was given to it between these seqs."""
        for seq in self._by_seq.irange(after, upto, inclusive=(False, True)):
            standing = self._standings[self._by_seq[seq]]
            if formal in standing.have_it:
                standing.acknowledged.add(formal)
            elif standing.stored.expires_us <= now_us:
                standing.passed.add(formal)

    def ended(self, id_: bytes, acknowledged: Iterable[bytes], now_us: int) -> None:
        """Its lifetime is over; these have acknowledged it elsewhere."""
        standing = self._standings.get(id_)
        if standing is not None and id_ not in self._over:
            standing.acknowledged.update(acknowledged)
            self._over[id_] = now_us + KEPT_US
        while self._over and next(iter(self._over.values())) <= now_us:
            self.drop(next(iter(self._over)))

    def drop(self, id_: bytes) -> None:
        """Cancelled, it has no end to be asked about."""
        standing = self._standings.pop(id_, None)
        self._over.pop(id_, None)
        if standing is not None:
            self._by_seq.pop(standing.stored.seq, None)
            self._weight -= 1 + len(standing.have_it)

    def _weigh(self, more: int) -> None:
        """What came first goes first; if it is asked about again, that is known."""
        self._weight += more
        while self._weight > MOST_KEPT and len(self._standings) > 1:
            id_, standing = next(iter(self._standings.items()))
            self._whole_after = max(self._whole_after, standing.stored.seq)
            self.drop(id_)
