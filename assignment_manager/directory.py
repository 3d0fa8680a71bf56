"""What one manager holds: the ring of all peers, the lines it hosts or keeps a copy of, the servers'
addresses, and what it knows the other managers to keep.

It is told, and says what to pass on to whom. It never judges: of two epochs the higher is right, and a
line older than what it has heard of is not answered. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from assignment_manager.digest import (
    BUCKETS,
    Believed,
    Detail,
    Digest,
    Digests,
    Servers,
    buckets_section,
)
from assignment_manager.peer import Peer, Peers, peer_of
from assignment_manager.ring import Ring
from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.shares import SCA_ROLES
from utuple.cluster.table import Table
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section


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
        self._servers = Servers()
        self.servers = self._servers.by_name
        self.sca_servers: dict[str, ServerInfo] = {}
        """Those of the servers every answer names, also those that are away: whoever thinks they serve hears so."""
        self._kept_by: dict[str, Believed] = {}
        """Per manager: which of the lines that both of us should hold it said it keeps, and what was passed on to it since."""
        self._confirmed: dict[str, dict[int, Peer]] = {}
        """Per manager: what it confirmed of lines that are not ours. It tells that to nobody but who hands them over, so it is
        remembered, or they would be handed over again each time somebody announces them here."""
        self._guests: set[int] = set()
        """Section starts of lines held here until those who should hold them are known to."""
        self._peer_digests = Digests(self._peers_in)
        self._kept_digests: dict[str, Digests] = {}
        """Per manager: of the lines held here that it should hold too. What others hold is none of its business."""

    # --- what it is told -------------------------------------------------------------------------

    def settle(self, ring: Ring) -> list[PassOn]:
        """Managers have come or gone: hand over what others should hold now."""
        self.ring = ring
        self._kept_by = {
            name: believed.only(self._is_ours)
            for name, believed in self._kept_by.items()
            if name in ring.managers
        }
        self._confirmed.clear()
        self._kept_digests.clear()
        self._guests = {line.section.start for line in self.lines if not self._is_ours(line)}
        owed = self._owed(self.lines.items)
        self._shed()
        return owed

    def has_started_again(self, manager: str) -> None:
        """Empty: what it said or confirmed in an earlier life is gone."""
        self._kept_by.pop(manager, None)
        self._confirmed.pop(manager, None)

    def hear_servers(self, servers: Iterable[ServerInfo]) -> None:
        for server in servers:
            known = self.servers.get(server.name)
            if known is None or _newness(server) > _newness(known):
                self._servers.put(server)
                self.sca_servers.pop(server.name, None)
                if server.role in SCA_ROLES:
                    self.sca_servers[server.name] = server

    def hear_peers(self, peers: Iterable[Peer]) -> None:
        """A line older than its peer is dropped: somewhere there is a newer one."""
        for peer in peers:
            if self.peers.hear(peer):
                self.lines.cut(peer.section, peer.epoch)
                self._touch(peer.section, peers=True)

    def hear_lines(self, lines: Iterable[Line], *, passed_on: bool = False) -> list[PassOn]:
        """From a server: kept if we are among the holders, passed on to the others, and until they
        have it kept by us as well. What a manager passes on is kept as it is: it may know of managers
        we do not know yet."""
        current: list[Line] = []
        for line in lines:
            self.hear_peers([peer_of(line)])
            for part in self.peers.current(line):
                if (passed_on or not self._is_for_others(part)) and self.lines.hear(part):
                    self._touch(part.section)
                    if not self._is_ours(part):
                        self._guests.add(part.section.start)
                current.append(part)
        return [] if passed_on else self._owed(current)

    def hear_kept(
        self, manager: str, kept: Iterable[Peer], buckets: Iterable[int] = range(BUCKETS)
    ) -> list[PassOn]:
        """What another manager says it keeps in these buckets, in place of what we thought. It is owed what it lacks: lines
        that both should hold, and guests of ours, which it should hold alone: they make our digests differ for as long
        as they are here, so what was lost on its way is asked for again."""
        buckets = list(buckets)
        self._kept_by.setdefault(manager, Believed()).replace(buckets, kept)
        lines = [line for bucket in buckets for line in self._lines_in(bucket)]
        owed = self._owed(lines, only_to=manager)
        self._shed()
        return owed

    def passed_on(self, done: PassOn) -> None:
        """It was confirmed; perhaps late, when a newer line of the same section was confirmed already."""
        kept = self._kept_by.setdefault(done.to, Believed())
        confirmed = self._confirmed.setdefault(done.to, {})
        for peer in map(peer_of, done.lines):
            if self._is_ours(peer):
                kept.add(peer)
                continue
            known = confirmed.get(peer.section.start)
            if known is None or known.epoch <= peer.epoch:
                confirmed[peer.section.start] = peer
        self._shed()

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

    def content(self, buckets: Iterable[int], to: str) -> list[tuple[Peer, bool]]:
        """The peers of these buckets, each with whether its line is held here and should be held there too."""
        return [
            (p, self._shares(p, to)) for bucket in buckets for p in self._peers_in(bucket, bucket)
        ]

    def server_content(self, buckets: Iterable[int]) -> list[ServerInfo]:
        return self._servers.content(buckets)

    @property
    def servers_token(self) -> int:
        """Changes whenever anything known of a server does."""
        return self._servers.whole

    def digest(self, to: str | None) -> Digest:
        kept = self._shared_with(to).whole if to is not None else 0
        return Digest(self.servers_token, self._peer_digests.whole, kept)

    def detail(self, to: str) -> Detail:
        return Detail(self._servers.all(), self._peer_digests.all(), self._shared_with(to).all())

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

    def _peers_in(self, first: int, last: int) -> list[Peer]:
        """Those that begin in these buckets."""
        section = buckets_section(first, last)
        low = bisect_left(self.peers.starts, section.start)
        return self.peers.items[low : bisect_left(self.peers.starts, section.end)]

    def _lines_in(self, bucket: int) -> list[Line]:
        section = buckets_section(bucket, bucket)
        low = bisect_left(self.lines.starts, section.start)
        return self.lines.items[low : bisect_left(self.lines.starts, section.end)]

    def _shares(self, peer: Peer, manager: str) -> bool:
        return self._keeps(peer) and manager in self.ring.holders(peer.section.start)

    def _shared_with(self, manager: str) -> Digests:
        found = self._kept_digests.get(manager)
        if found is None:
            found = self._kept_digests[manager] = Digests(
                lambda *buckets: (p for p in self._peers_in(*buckets) if self._shares(p, manager))
            )
            found.touch(Section(0, HASH_SPACE))
        return found

    def _touch(self, section: Section, *, peers: bool = False) -> None:
        for digests in self._kept_digests.values():
            digests.touch(section)
        if peers:
            self._peer_digests.touch(section)

    def _is_kept_by(self, manager: str, line: Line) -> bool:
        believed, start = self._kept_by.get(manager), line.section.start
        peer = believed.find(start) if believed is not None else None
        if peer is None:
            peer = self._confirmed.get(manager, {}).get(start)
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

    def _is_ours(self, item: Line | Peer) -> bool:
        peer = self.peers.find(item.section.start)
        start = peer.section.start if peer else item.section.start
        return self.own in self.ring.holders(start)

    def _is_for_others(self, line: Line) -> bool:
        """Others should hold it, and all of them are known to."""
        holders = self._holders(line)
        return self.own not in holders and all(self._is_kept_by(name, line) for name in holders)

    def _guest(self, start: int) -> Line | None:
        line = self.lines.find(start)
        is_here = line is not None and line.section.start == start and not self._is_ours(line)
        return line if is_here else None

    def _shed(self) -> None:
        """Guests leave once they are known to be at home."""
        for start in list(self._guests):
            line = self._guest(start)
            if line is None:
                self._guests.discard(start)
            elif self._is_for_others(line):
                self._guests.discard(start)
                self.lines.forget(start)
                self._touch(line.section)


def _newness(server: ServerInfo) -> tuple[int, str]:
    return server.since_us, server.address
