"""A reader's positions while rows move from server to server: nothing is lost, nothing comes twice.

Servers are lists of rows, each with its origin and the origin's seq; a drain brings all of one's rows to
another. Streams break, readers crash, words travel late. What the servers do is what the protocol promises.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from utuple.client.receiving.progress import Progress
from utuple.client.receiving.repeats import Seen

Row = tuple[str, int]
"""origin, seq: what a uTuple is found by."""

NAMES = ["a", "b", "c", "d"]


def id_of(row: Row) -> bytes:
    return f"{row[0]}{row[1]:>15}".encode()


@dataclass
class Server:
    name: str
    seq: int = 0
    rows: list[Row] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    """By origin: how far the stream has come."""

    def attach(self, positions: dict[str, int] | None) -> None:
        """Origins that are not named go on after what was acknowledged."""
        self.sent = dict(self.acknowledged)
        if positions is not None:
            self.sent |= {self.name: 0} | positions

    def next_rows(self, count: int) -> list[Row]:
        due = [row for row in self.rows if row[1] > self.sent.get(row[0], 0)][:count]
        for origin, seq in due:
            self.sent[origin] = seq
        return due

    def take_from(self, drained: Server) -> None:
        self.rows += drained.rows
        drained.rows = []
        for origin, seq in drained.acknowledged.items():
            self.acknowledged[origin] = max(seq, self.acknowledged.get(origin, 0))
        for origin, seq in self.acknowledged.items():
            self.sent[origin] = max(seq, self.sent.get(origin, 0))


class Play:
    def __init__(self, *, named: bool) -> None:
        self.named = named
        self.servers = {name: Server(name) for name in NAMES}
        self.gone: set[str] = set()
        self.done: set[Row] = set()
        self.order = self.fresh()
        self.given: list[Row] = []
        self.waiting: list[Row] = []
        self.over: set[Row] = set()
        """Acknowledged in an earlier life, and the server that has the row knows it."""

    def fresh(self) -> Progress:
        return Progress(seen=Seen(10_000_000), unacknowledged=1_000 if self.named else 0)

    def act(self, what: str, who: str, number: int) -> None:
        server = self.servers[who]
        match what:
            case "register" if who not in self.gone:
                server.seq += 1
                server.rows.append((who, server.seq))
            case "deliver" if who not in self.gone:
                self.deliver(server, number)
            case "break" if who not in self.gone:
                self.attach(server)
            case "acknowledge" if self.waiting and self.named:
                row = self.waiting.pop(number % len(self.waiting))
                self.done.add(row)
                self.order.acknowledge(row[0], row[1], id_of(row))
            case "tell" if who not in self.gone and self.named:
                positions = self.order.acknowledged(who, self.order.own & self.gone)
                for origin, seq in positions.items():
                    known = server.acknowledged.get(origin, 0)
                    server.acknowledged[origin] = max(seq, known)
            case "drain" if who not in self.gone and len(self.gone) < len(NAMES) - 1:
                heirs = [name for name in NAMES if name != who and name not in self.gone]
                self.servers[heirs[number % len(heirs)]].take_from(server)
                self.gone.add(who)
            case "crash" if self.named:
                self.order, self.given, self.waiting = self.fresh(), [], []
                for other in self.servers.values():
                    acknowledged = other.acknowledged
                    self.over |= {
                        row for row in other.rows if row[1] <= acknowledged.get(row[0], 0)
                    }
                    self.attach(other)

    def attach(self, server: Server) -> None:
        knows = not self.named or self.order.has_received(server.name)
        server.attach(self.order.resume_after() if knows else None)

    def deliver(self, server: Server, count: int) -> None:
        for origin, seq in server.next_rows(count):
            if self.order.arrive(server.name, origin, [seq], [id_of((origin, seq))]) is None:
                self.given.append((origin, seq))
                self.waiting.append((origin, seq))


ACTIONS = st.tuples(
    st.sampled_from(
        "register register register deliver deliver break acknowledge tell drain crash".split()
    ),
    st.sampled_from(NAMES),
    st.integers(0, 5),
)


@given(st.lists(ACTIONS, max_size=80), st.booleans())
def test_whatever_moves_breaks_and_crashes_everything_is_given_once_a_life(
    actions: list[tuple[str, str, int]], named: bool
) -> None:
    """And what is known to be acknowledged is not given in a later one."""
    play = Play(named=named)
    for what, who, number in actions:
        play.act(what, who, number)
    for server in play.servers.values():
        play.deliver(server, 1_000)
    registered = {row for server in play.servers.values() for row in server.rows}
    assert registered <= {*play.given, *play.done}
    assert len(play.given) == len(set(play.given))
    assert not play.over & set(play.given)
