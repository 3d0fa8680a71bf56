"""Readers' streams: an outbox for each, and what is put into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.table import Table
from utuple.server.delivering.cursor import Sending
from utuple.server.delivering.outbox import Outbox, Outgoing

Distribute = Callable[[Sending], Iterable[Sending]]


class Streams:
    def __init__(self) -> None:
        self._outboxes: dict[int, Outbox] = {}
        self._next = 0
        self.distribute: Distribute = lambda sending: (sending,)
        """Of what is for the seats of a formal: to whom it goes."""
        self.lines = Table()
        """Those that are durable: the writer's own are ahead of its commits."""

    def __contains__(self, stream: int) -> bool:
        return stream in self._outboxes

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._outboxes))

    def open(self, flush: Callable[[], None]) -> tuple[int, Outbox]:
        self._next += 1
        outbox = self._outboxes[self._next] = Outbox(flush)
        return self._next, outbox

    def close(self, stream: int) -> None:
        self._outboxes.pop(stream, None)

    def drop(self, stream: int, formal: bytes) -> None:
        """What waits there for this formal alone is for nobody."""
        if stream in self._outboxes:
            self._outboxes[stream].drop(formal)

    def send(self, stream: int, item: Outgoing) -> None:
        outbox = self._outboxes.get(stream)
        if outbox is not None:
            outbox.put(item)
            outbox.flush()

    def send_all(self, sendings: Sequence[Sending]) -> None:
        """Each stream writes once, when all that is for it is in its outbox: that is the fewest messages."""
        concerned: dict[int, Outbox] = {}
        for whole in sendings:
            for sending in (whole,) if whole.stream > 0 else self.distribute(whole):
                outbox = self._outboxes.get(sending.stream)
                if outbox is not None:
                    outbox.put(sending)
                    concerned[sending.stream] = outbox
        for outbox in concerned.values():
            outbox.flush()

    def tell(
        self,
        lines: Iterable[Line],
        keys_on: Callable[[int], set[int]],
        servers: Mapping[str, ServerInfo],
    ) -> None:
        """Those of them that are news, to each stream that reads some key of them."""
        news = [line for line in lines if self.lines.hear(line)]
        for stream in self if news else ():
            keys = keys_on(stream)
            concerned = [line for line in news if any(key in line.section for key in keys)]
            self.send_lines(stream, concerned, servers)

    def send_lines(
        self, stream: int, lines: Iterable[Line], servers: Mapping[str, ServerInfo]
    ) -> None:
        outbox = self._outboxes.get(stream)
        if outbox is not None:
            outbox.put_lines(lines, servers)
            outbox.flush()
