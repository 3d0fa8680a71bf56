"""A command's way to its devices: who waits for it, which devices it met, and which of them have it.

A search for devices may take seconds where much is stored, and callers give up earlier than that and come again with the
same command. If each visit were searched anew, a queue of commands would take longer than their callers wait, all of
them would come again, and the queue would never end though nothing is wrong any more. So what a search has found is
remembered for a while, also when nobody waits for it by then: the next visit has its answer at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from sortedcontainers import SortedDict

from utuple.delivery.handed import Handed
from utuple.model.packed import Packed

MOST_REMEMBERED = 100_000
"""Devices (and commands) of handovers nobody waits for: some megabytes. A single one may have more: its caller may just be
asking for the next portion of it."""


@dataclass(slots=True)
class Handover:
    """What a device has confirmed stays so, even if it leaves at once; and whom the command has met stays so, too."""

    of: Packed | None = None
    """The command."""
    found: asyncio.Event = field(default_factory=asyncio.Event)
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    devices: SortedDict[bytes, str] = field(default_factory=SortedDict)
    """The addresses of the CFs it met; in order of their ids, since they may be told in portions."""
    epoch: int = 0
    """Of the line when the last search began."""
    sent: set[bytes] = field(default_factory=set)
    have_it: set[bytes] = field(default_factory=set)
    waiting: int = 0
    """Calls that wait for it: one that comes again finds the first still there."""

    def is_complete(self, epoch: int) -> bool:
        """Did it meet all it can meet here under this line? A newer one may have brought more devices here (R5)."""
        return self.found.is_set() and self.epoch == epoch > 0

    def search_again(self) -> None:
        """Whoever waits is answered after the next search."""
        self.found.clear()
        self.confirmed.clear()

    def searched(self, epoch: int) -> None:
        self.epoch = epoch
        self.found.set()
        self.settle()

    def settle(self) -> None:
        if self.found.is_set() and self.sent <= self.have_it:
            self.confirmed.set()

    def devices_after(self, formal: bytes) -> Iterator[tuple[bytes, str]]:
        for id_ in self.devices.irange(formal, inclusive=(False, False)):
            yield id_, self.devices[id_]

    def handed(self, formal: bytes) -> Handed:
        if formal in self.have_it:
            return Handed.HANDED_OVER
        return Handed.NOT_CONFIRMED if formal in self.sent else Handed.NOT_CONNECTED


class Handovers:
    def __init__(self) -> None:
        self._expected: dict[bytes, Handover] = {}
        self._past: OrderedDict[bytes, Handover] = OrderedDict()
        """Searched, and nobody waits."""
        self._past_weight = 0

    def __len__(self) -> int:
        """Commands whose callers wait."""
        return len(self._expected)

    def get(self, command: bytes) -> Handover | None:
        return self._expected.get(command) or self._past.get(command)

    def is_expected(self, command: bytes) -> bool:
        return command in self._expected

    def expect(self, command: bytes) -> Handover:
        """Someone waits for this command's devices; ends with `forget`."""
        handover = self._expected.get(command) or self.drop(command) or Handover()
        self._expected[command] = handover
        handover.waiting += 1
        return handover

    def forget(self, command: bytes) -> None:
        handover = self._expected[command]
        handover.waiting -= 1
        if not handover.waiting:
            del self._expected[command]
            self.remember(command, handover)

    def remember(self, command: bytes, handover: Handover) -> None:
        """What was found, though nobody waits for it now."""
        if command in self._expected or not handover.found.is_set():
            return
        self.drop(command)
        self._past[command] = handover
        self._past_weight += _weight(handover)
        while self._past_weight > MOST_REMEMBERED and len(self._past) > 1:
            self.drop(next(iter(self._past)))

    def drop(self, command: bytes) -> Handover | None:
        handover = self._past.pop(command, None)
        if handover is not None:
            self._past_weight -= _weight(handover)
        return handover


def _weight(handover: Handover) -> int:
    return 1 + len(handover.devices)
