"""One assignment manager as a machine: news goes in, "pass this on, gossip with those" comes out.

It joins the parts (who lives, the ring they form, the directory) and knows no clock, no dice and no
network, so that a whole ring of managers runs in one thread from a seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assignment_manager.digest import Detail, Digest
from assignment_manager.directory import Directory, Found, PassOn
from assignment_manager.gossip import Alive, Dice, Gossip, Health, Timeouts
from assignment_manager.peer import Peer
from assignment_manager.ring import TOKENS, Ring
from utuple.cluster.line import Line, ServerInfo


@dataclass(frozen=True, slots=True)
class Rumour:
    """What one manager tells another. The one that speaks is the first of those alive.

    An exchange takes one call if both know the same: digests go there and come back. If they do not, the answer has the digests
    of every bucket, and a second call brings what lies in those that differ, in both directions.
    """

    alive: tuple[Alive, ...]
    digest: Digest
    detail: Detail | None = None
    """By bucket, when the whole differed."""
    server_buckets: tuple[int, ...] = ()
    """Those of servers whose content is told."""
    servers: tuple[ServerInfo, ...] = ()
    """Their content."""
    buckets: tuple[int, ...] = ()
    """Those of the hash space whose content is told."""
    peers: tuple[tuple[Peer, bool], ...] = ()
    """Their content: each with whether the one that speaks keeps its line."""

    @property
    def speaker(self) -> str:
        return self.alive[0].manager.name

    @property
    def tells(self) -> bool:
        """Is there more in it than digests?"""
        return bool(self.server_buckets or self.buckets)


@dataclass(frozen=True, slots=True)
class Round:
    """What to do at a tick."""

    gossip_with: list[str]
    """Addresses."""
    pass_on: list[PassOn]


@dataclass(frozen=True, slots=True)
class ManagerState:
    manager: ServerInfo
    health: Health
    hosted: int
    kept: int


class Manager:
    def __init__(
        self, own: ServerInfo, seeds: Iterable[str], timeouts: Timeouts, tokens: int = TOKENS
    ) -> None:
        self.gossip = Gossip(own, seeds, timeouts)
        self.directory = Directory(own.name)
        self._tokens = tokens
        self._lives: frozenset[ServerInfo] = frozenset()
        """Managers on the ring, each in the life it has now."""
        self._announced: dict[str, tuple[int, int]] = {}
        """Per server: since when it runs, and the token of the lines it has announced to us."""

    def tick(self, now_s: float, dice: Dice) -> Round:
        self.gossip.beat(now_s, len(self.directory.lines))
        return Round(self.gossip.partners(now_s, dice), self._settle(now_s))

    def rumour(self, now_s: float, to: str | None = None, heard: Rumour | None = None) -> Rumour:
        """What to say to this manager, if its name is known; after what it has said, if it has."""
        directory = self.directory
        alive, digest = tuple(self.gossip.living(now_s)), directory.digest(to)
        if heard is None or to is None:
            return Rumour(alive, digest)
        buckets, server_buckets, detail = heard.buckets, heard.server_buckets, None
        if heard.detail is not None:
            own = directory.detail(to)
            buckets = own.differing(heard.detail)
            server_buckets = own.differing_servers(heard.detail)
        elif not heard.tells and digest.differs(heard.digest):
            detail = directory.detail(to)
        return Rumour(
            alive,
            digest,
            detail,
            server_buckets,
            tuple(directory.server_content(server_buckets)),
            buckets,
            tuple(directory.content(buckets, to)),
        )

    def hear_rumour(self, rumour: Rumour, now_s: float, at: str | None = None) -> list[PassOn]:
        """`at` is the address where it was fetched, if it was."""
        if rumour.speaker == self.gossip.own.name:
            if at is not None:
                self.gossip.met(at, rumour.speaker)
            return []
        self.gossip.hear(rumour.alive, now_s)
        if at is not None:
            self.gossip.met(at, rumour.speaker)
        self.directory.hear_servers(rumour.servers)
        self.directory.hear_peers(peer for peer, _ in rumour.peers)
        handed_over = self._settle(now_s)
        owed: list[PassOn] = []
        if rumour.buckets:
            kept = [peer for peer, is_kept in rumour.peers if is_kept]
            owed = self.directory.hear_kept(rumour.speaker, kept, rumour.buckets)
        return [*(one for one in handed_over if one.to != rumour.speaker), *owed]

    def hear_announcement(self, server: ServerInfo, lines: Iterable[Line]) -> list[PassOn]:
        self.directory.hear_servers([server])
        return self.directory.hear_lines(lines)

    def wants_lines(self, server: ServerInfo, token: int) -> bool:
        """Of a server that says it is there: are its lines to be told?"""
        self.directory.hear_servers([server])
        return self._announced.get(server.name) != (server.since_us, token)

    def has_announced(self, server: ServerInfo, token: int) -> None:
        self._announced[server.name] = (server.since_us, token)

    def forget_announced(self) -> None:
        """Something is missing that may be lost here and with those who held it: have everybody say everything again."""
        self._announced.clear()

    def hear_passed_on(self, lines: Iterable[Line], servers: Iterable[ServerInfo]) -> None:
        self.directory.hear_servers(servers)
        self.directory.hear_lines(lines, passed_on=True)

    def lookup(self, keys: Sequence[int]) -> Found:
        return self.directory.lookup(keys)

    def in_asking_order(self, holders: Iterable[str], now_s: float) -> list[str]:
        """The host first, those suspected last."""
        return sorted(holders, key=lambda name: self.gossip.health(name, now_s) is not Health.ALIVE)

    def manager_states(self, now_s: float) -> list[ManagerState]:
        hosted = self.directory.hosted()
        return [
            ManagerState(
                info,
                self.gossip.health(info.name, now_s),
                hosted.get(info.name, 0),
                self.gossip.kept(info.name),
            )
            for info in sorted(self.gossip.known(), key=lambda info: info.name)
        ]

    def _settle(self, now_s: float) -> list[PassOn]:
        """When managers come, go or start again, everything is announced once more: a server tells only a few managers, so
        these cannot know whether all who held one of its lines have started again empty at the same time."""
        lives = frozenset(alive.manager for alive in self.gossip.living(now_s))
        if lives == self._lives:
            return []
        for begun in lives - self._lives:
            self.directory.has_started_again(begun.name)
        self._lives = lives
        self.forget_announced()
        living = frozenset(manager.name for manager in lives)
        if living == self.directory.ring.managers:
            return []
        return self.directory.settle(Ring(living, self._tokens))
