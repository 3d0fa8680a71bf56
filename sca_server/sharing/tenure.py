"""Which devices this sCA server may speak for, while servers join, leave and crash. Pure: `now_s` is an argument.

Shares move as soon as the list of names changes, but a device does not: it has to hear of it and attach here. Until then
"not connected" would be wrong, and "no such device" too, before its CF was read. So a device is

    another's   by the names as they are now: the caller is told the names, and asks the other
    steady      ours now and under every list of names since the last one that settled: everything is known of it here
    new         ours now, and not steady: it may be handed what it waits for, but it is not denied yet

The list of names settles when every uTupleServer was read again, the other sCA servers go by the same names (so that their
devices have been sent here), and devices had `settle_s` to come; longer while they keep coming, or their programs say that more
are on their way, and `most_s` at most. A program with thousands of devices brings them one after the other and may be busy with other
things in between: by time alone one would take its pause for the end, and call devices not connected that are about to come. While a
uTupleServer is down that takes long: a new device whose own servers were read is spoken for as soon as it had its time.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

from utuple.cluster.shares import Shares
from utuple.model.utuple import Family


@dataclass(frozen=True, slots=True)
class TenureLimits:
    settle_s: float
    """After everybody agrees devices have this long to come."""
    agree_s: float
    """Another that does not answer is not waited for longer than this."""
    pause_s: float
    """While one device comes within this of the last, more are expected."""
    most_s: float
    """But no longer than this."""


class Tenure:
    def __init__(self, own: str, limits: TenureLimits, now_s: float) -> None:
        self._own = own
        self._limits = limits
        self.shares = Shares([own])
        """As they are now."""
        self._settled: Shares | None = None
        self._since: list[Shares] = [self.shares]
        """Every list of names since the settled one, the last of which is `shares`."""
        self._changed_s = self._came_s = now_s
        self._agreed_s: float | None = None
        self._bringing: set[Hashable] = set()
        """Programs, by their streams, that have more devices to attach here."""

    def change(self, shares: Shares, now_s: float) -> bool:
        """The names are these now. True: devices may have become ours, and are to be read."""
        last = self._since[-1] if self._since else self._settled
        self.shares = shares
        self._agreed_s = None
        if last is not None and shares.gives_no_more(self._own, last):
            # What is ours now was ours by the last list as well: that one may be forgotten.
            if self._since:
                self._since[-1] = shares
            else:
                self._settled = shares
            if self._settled is not None and self._since == [shares]:
                self._drop_if_nothing_gained()
            return False
        self._since.append(shares)
        self._changed_s = self._came_s = now_s
        return True

    def doubt(self, now_s: float) -> None:
        """This one stood still, and devices may have gone to others meanwhile: nothing is steady until all agree anew."""
        self._settled, self._since = None, [self.shares]
        self._agreed_s = None
        self._changed_s = self._came_s = now_s

    def _drop_if_nothing_gained(self) -> None:
        assert self._settled is not None
        if self.shares.gives_no_more(self._own, self._settled):
            self._settled, self._since = self.shares, []

    # --- one device -----------------------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        return not self._since

    @property
    def has_all(self) -> bool:
        """Every device is ours, and steady."""
        return not self._since and self.shares.names == (self._own,)

    @property
    def has_share(self) -> bool:
        """One that leaves has none."""
        return self._own in self.shares.names

    def owns(self, family: Family, address: str) -> bool:
        return self.shares.names != () and self.shares.owner(family, address) == self._own

    def is_steady(self, family: Family, address: str) -> bool:
        """Of a device that is ours."""
        if not self._since:
            return True
        if self._settled is None:
            return False
        lists = (self._settled, *self._since[:-1])
        return all(names.names and names.owner(family, address) == self._own for names in lists)

    # --- settling -------------------------------------------------------------------------------------

    def agree(self, *, by_all: bool, now_s: float) -> bool:
        """Whether the others go by the same names; one that does not answer is waited for only so long. True: now they do."""
        if self._agreed_s is None and (by_all or now_s - self._changed_s >= self._limits.agree_s):
            self._agreed_s = now_s
            return True
        return False

    def came(self, now_s: float) -> None:
        """A device that is new here has attached."""
        self._came_s = now_s

    def bring(self, program: Hashable, *, more: bool) -> None:
        """A program says that more of its devices are on their way here; or that all have come, or it has gone."""
        if more:
            self._bringing.add(program)
        else:
            self._bringing.discard(program)

    @property
    def has_agreed(self) -> bool:
        """And what was registered with another before that is read from now on."""
        return self._agreed_s is not None

    def had_time(self, now_s: float) -> bool:
        """Devices had theirs: who has not come is not connected."""
        if self._agreed_s is None:
            return False
        limits = self._limits
        due_s = max(self._agreed_s + limits.settle_s, self._came_s + limits.pause_s)
        if self._bringing:
            due_s = math.inf
        return now_s >= min(due_s, self._changed_s + limits.most_s)

    def settle(self, *, filled: bool, now_s: float) -> bool:
        """All was read, and devices had their time: from now on all that is ours is steady."""
        if not self._since or not filled or not self.had_time(now_s):
            return False
        self._settled, self._since = self.shares, []
        return True


def alone(own: str = "sca-1") -> Tenure:
    """Of a server that is the only one, and has settled."""
    tenure = Tenure(own, TenureLimits(0.0, 0.0, 0.0, math.inf), 0.0)
    tenure.agree(by_all=True, now_s=0.0)
    tenure.settle(filled=True, now_s=0.0)
    return tenure
