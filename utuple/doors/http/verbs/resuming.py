"""What a named reader was sent, so that it can go on after the event whose id it names (`Last-Event-ID`). Pure.

A browser acknowledges nothing while it reads: it says how far it is when it comes back. So nothing is acknowledged before
that (or before an explicit ack), and a stream ends after so many events, or so much time, that the client comes back and says
it. When it does, the cluster gives again what was not acknowledged, and `is_repeat` knows which of it the reader has.

A door that was started again remembers nothing: then a reader is given again what was not acknowledged, and drops repeats
by the events' ids. At least once, never a gap.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from uuid import UUID

_TAG_BYTES = 6
HAS_MOST = 20_000
"""Events kept in mind until they come again: those whose lifetime ended meanwhile never do. Of one that is forgotten the reader is given a repeat."""


def tag_of(reader: str) -> str:
    return hashlib.blake2b(reader.encode(), digest_size=_TAG_BYTES).hexdigest()


def id_of(tag: str, event: UUID) -> str:
    return f"{tag}-{event.hex}"


@dataclass
class Sent:
    """To one reader: ids in the order they were written, and those it has for sure."""

    order: deque[UUID] = field(default_factory=deque)
    """Not acknowledged yet."""
    has: dict[UUID, None] = field(default_factory=dict)
    """Not acknowledged in time, though the reader has said that it has them: to be acknowledged when they come again."""
    was_dropped: bool = False
    """Its last connection was cut because it took nothing."""

    def write(self, event: UUID) -> None:
        self.order.append(event)

    def acknowledge(self, event: UUID, *, comes_again: bool = True) -> bool:
        """The reader has this one and those before; False: it is not known here, and nothing changes. `comes_again`: its
        stream is broken, so the cluster gives again what was not acknowledged."""
        if event not in self.order:
            return False
        has = None
        while has != event:
            has = self.order.popleft()
            if comes_again:
                self.has[has] = None
        while len(self.has) > HAS_MOST:
            del self.has[next(iter(self.has))]
        return True

    def begin_again(self) -> None:
        """What was not acknowledged comes again."""
        self.order.clear()

    def is_repeat(self, event: UUID) -> bool:
        if event in self.has:
            del self.has[event]
            return True
        return False


class Readers:
    """Those that came to this door, the most recent ones."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sent: OrderedDict[str, Sent] = OrderedDict()

    def of(self, reader: str) -> Sent:
        sent = self._sent.setdefault(reader, Sent())
        self._sent.move_to_end(reader)
        while len(self._sent) > self._most:
            self._sent.popitem(last=False)
        return sent

    def forget(self, reader: str) -> None:
        self._sent.pop(reader, None)
