"""What a server says of itself to a manager: a token of its lines, and the lines themselves only when they are wanted.

Managers keep nothing on disk, so a server announces itself again and again. In a steady state that is a few bytes, however many
lines it has: the manager knows the token. One that lost everything, or whose ring has changed, does not, and asks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from utuple.cluster.line import Line, ServerInfo
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, server_to_wire

TOLD = 3
"""Managers a server announces itself to; the others learn of it by gossip. As many as hold a line, so that two may die. If every
server told every manager, each manager of fifty would be called by ten thousand servers."""

LINES_AT_ONCE = 1_000
"""More lines than these go as several announcements: no manager is kept busy for long."""


def told(server: ServerInfo, managers: Iterable[str]) -> frozenset[str]:
    """The managers this server announces itself to. By a hash of both names: servers are spread over the managers evenly, and when
    one goes only those that told it look for another. sCA servers and monitors are few, and tell all."""

    def rank(manager: str) -> bytes:
        return hashlib.blake2b(f"{server.name}\0{manager}".encode(), digest_size=8).digest()

    return frozenset(sorted(managers, key=rank)[: TOLD if server.role == "server" else None])


class Announcements:
    """Of one server, to all managers: lines that have not changed are encoded once."""

    def __init__(
        self,
        own: Callable[[], ServerInfo],
        lines: Callable[[], Iterable[Line]],
        others: Callable[[], Iterable[ServerInfo]] = tuple,
        grants_number: Callable[[], int] = lambda: 0,
    ) -> None:
        """`others` are servers it knows more about than they say themselves: those that are silent or have left;
        `grants_number` is that of the grants it holds."""
        self._info = own
        self._grants_number = grants_number
        self._lines = lines
        self._others = others
        self._encoded: list[pb.Line] = []
        self._told: list[Line] | None = None
        self._token = 0

    def opening(self, last: pb.Heard) -> pb.Announcement:
        """`last` is what this manager answered last: who is there is not told again while it stays the same."""
        self._encode()
        return pb.Announcement(
            server=self._own,
            opening=True,
            lines_token=self._token,
            servers_token=last.servers_token,
            managers_token=last.managers_token,
            grants_number=self._grants_number(),
            others=map(server_to_wire, self._others()),
        )

    def following(self, last: pb.Heard) -> list[pb.Announcement]:
        """All lines, in portions; the token comes with the last, and says that it is the last."""
        self._encode()
        lines = self._encoded
        portions = [
            pb.Announcement(
                server=self._own,
                lines=lines[at : at + LINES_AT_ONCE],
                servers_token=last.servers_token,
                managers_token=last.managers_token,
                grants_number=self._grants_number(),
            )
            for at in range(0, max(len(lines), 1), LINES_AT_ONCE)
        ]
        portions[-1].lines_token = self._token
        return portions

    @property
    def _own(self) -> pb.ServerInfo:
        return server_to_wire(self._info())

    def _encode(self) -> None:
        lines = list(self._lines())
        if lines == self._told:
            return
        self._told, self._encoded = lines, [line_to_wire(line) for line in lines]
        hashed = hashlib.blake2b(digest_size=8)
        for line in self._encoded:
            content = line.SerializeToString(deterministic=True)
            hashed.update(len(content).to_bytes(4, "big") + content)
        self._token = int.from_bytes(hashed.digest(), "big") or 1
