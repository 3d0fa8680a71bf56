"""What one manager holds: the ring of all peers, the lines it hosts or keeps a copy of, the servers'
addresses, and what it knows the other managers to keep.

It is told, and says what to pass on to whom. It never judges: of two epochs the higher is right, and a
line older than what it has heard of is not answered. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from assignment_manager.peer import Peer, Peers, peer_of
from assignment_manager.ring import Ring
from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.table import Table


@dataclass(frozen=True, slots=True)
class PassOn:
    """Lines another manager should hold and is not known to."""

    to: str
    lines: tuple[Line, ...]
    servers: tuple[ServerInfo, ...]


@dataclass(slots=True)
class Found:
    lines: list[Line] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    """Per key: index into lines plus one; 0: not held here."""
    elsewhere: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    """Holders to ask, the first first -> positions of the keys."""


class Directory:
    def __init__(self, own: str) -> None:
        self.own = own
        self.ring = Ring([own])
        self.peers = Peers()
        self.lines = Table()
        self.servers: dict[str, ServerInfo] = {}
        self.sca_servers: dict[str, ServerInfo] = {}
        """Those of the servers every answer names."""
        self._kept_by: dict[str, dict[int, Peer]] = {}
        """Per manager: what it said it keeps, and what was passed on to it since, by section start."""

    # --- what it is told -------------------------------------------------------------------------

    def settle(self, ring: Ring) -> list[PassOn]:
        """Managers have come or gone: hand over what others should hold now."""
        self.ring = ring
        for gone in self._kept_by.keys() - ring.managers:
            del self._kept_by[gone]
        return self._owed(self.lines.items)

    def hear_servers(self, servers: Iterable[ServerInfo]) -> None:
        for server in servers:
            known = self.servers.get(server.name)
            if known is None or _newness(server) > _newness(known):
                self.servers[server.name] = server
                self.sca_servers.pop(server.name, None)
                if server.role == "sca":
                    self.sca_servers[server.name] = server

    def hear_peers(self, peers: Iterable[Peer]) -> None:
        """A line older than its peer is dropped: somewhere there is a newer one."""
        for peer in peers:
            if self.peers.hear(peer):
                self.lines.cut(peer.section, peer.epoch)

    def hear_lines(self, lines: Iterable[Line], *, passed_on: bool = False) -> list[PassOn]:
        """From a server: kept if we are among the holders, passed on to the others, and until they
        have it kept by us as well. What a manager passes on is kept as it is: it may know of managers
        we do not know yet."""
        current: list[Line] = []
        for line in lines:
            self.hear_peers([peer_of(line)])
            for part in self.peers.current(line):
                if passed_on or not self._is_for_others(part):
                    self.lines.hear(part)
                current.append(part)
        return [] if passed_on else self._owed(current)

    def hear_kept(self, manager: str, kept: Iterable[Peer]) -> list[PassOn]:
        """What another manager says it keeps, in place of what we thought."""
        self._kept_by[manager] = {peer.section.start: peer for peer in kept}
        owed = self._owed(self.lines.items, only_to=manager)
        self._shed(self.lines)
        return owed

    def passed_on(self, done: PassOn) -> None:
        kept = self._kept_by.setdefault(done.to, {})
        kept.update((line.section.start, peer_of(line)) for line in done.lines)
        self._shed(done.lines)

    # --- what it is asked ------------------------------------------------------------------------

    def lookup(self, keys: Sequence[int]) -> Found:
        """The hot path: one bisection a key."""
        found = Found()
        starts, ends, items = self.lines.starts, self.lines.ends, self.lines.items
        slots: dict[int, int] = {}
        answer, missing = found.line, []
        for position, key in enumerate(keys):
            at = bisect_right(starts, key) - 1
            if at < 0 or key >= ends[at]:
                answer.append(0)
                missing.append(position)
                continue
            slot = slots.get(at)
            if slot is None:
                found.lines.append(items[at])
                slot = slots[at] = len(found.lines)
            answer.append(slot)
        for position in missing:
            holders = self._others_holding(keys[position])
            if holders:
                found.elsewhere.setdefault(holders, []).append(position)
        return found

    def accept(self, line: Line) -> bool:
        """Is another manager's answer as new as anything we heard? If not, its holder will hear."""
        self.hear_peers([peer_of(line)])
        return self.peers.current(line) == [line]

    def missing(self) -> list[int]:
        """One key of each part of the ring of peers whose line is not held here."""
        return [hole.start for peer in self.peers for hole in self.lines.holes(peer.section)]

    def kept(self) -> list[tuple[Peer, bool]]:
        """The ring of peers, each with whether its whole line is held here."""
        return [(peer, self._keeps(peer)) for peer in self.peers.items]

    def kept_count(self, manager: str) -> int:
        return len(self.lines if manager == self.own else self._kept_by.get(manager, ()))

    def hosted(self) -> dict[str, int]:
        counts = dict.fromkeys(self.ring.managers, 0)
        for start in self.peers.starts:
            host = self.ring.host(start)
            if host is not None:
                counts[host] += 1
        return counts

    def servers_of(self, lines: Iterable[Line]) -> list[ServerInfo]:
        names = {member.name for line in lines for member in line.members}
        return [self.servers[name] for name in names if name in self.servers]

    # --- who holds what --------------------------------------------------------------------------

    def _keeps(self, peer: Peer) -> bool:
        line = self.lines.find(peer.section.start)
        return line is not None and line.section == peer.section and line.epoch == peer.epoch

    def _holders(self, line: Line) -> tuple[str, ...]:
        peer = self.peers.find(line.section.start)
        return self.ring.holders(peer.section.start if peer else line.section.start)

    def _others_holding(self, key: int) -> tuple[str, ...]:
        peer = self.peers.find(key)
        if peer is None:
            return ()
        return tuple(name for name in self.ring.holders(peer.section.start) if name != self.own)

    def _is_kept_by(self, manager: str, line: Line) -> bool:
        peer = self._kept_by.get(manager, {}).get(line.section.start)
        return peer is not None and peer.section == line.section and peer.epoch >= line.epoch

    def _owed(self, lines: Iterable[Line], only_to: str | None = None) -> list[PassOn]:
        batches: dict[str, list[Line]] = {}
        for line in lines:
            for name in self._holders(line):
                if name == self.own or only_to not in (None, name) or self._is_kept_by(name, line):
                    continue
                batches.setdefault(name, []).append(line)
        return [
            PassOn(name, tuple(batch), tuple(self.servers_of(batch)))
            for name, batch in batches.items()
        ]

    def _is_for_others(self, line: Line) -> bool:
        """Others should hold it, and all of them are known to."""
        holders = self._holders(line)
        return self.own not in holders and all(self._is_kept_by(name, line) for name in holders)

    def _shed(self, lines: Iterable[Line]) -> None:
        for line in lines:
            if self.lines.find(line.section.start) == line and self._is_for_others(line):
                self.lines.forget(line.section.start)


def _newness(server: ServerInfo) -> tuple[int, str]:
    return server.since_us, server.address
