"""One assignment manager as a machine: news goes in, "pass this on, gossip with those" comes out.

It joins the parts (who lives, the ring they form, the directory) and knows no clock, no dice and no
network, so that a whole ring of managers runs in one thread from a seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assignment_manager.directory import Directory, Found, PassOn
from assignment_manager.gossip import Alive, Dice, Gossip, Health, Timeouts
from assignment_manager.peer import Peer
from assignment_manager.ring import TOKENS, Ring
from utuple.cluster.line import Line, ServerInfo


@dataclass(frozen=True, slots=True)
class Rumour:
    """What one manager tells another. The one that speaks is the first of those alive."""

    alive: tuple[Alive, ...]
    servers: tuple[ServerInfo, ...]
    peers: tuple[tuple[Peer, bool], ...]
    """Each with whether the one that speaks keeps its line."""

    @property
    def speaker(self) -> str:
        return self.alive[0].manager.name


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

    def tick(self, now_s: float, dice: Dice) -> Round:
        self.gossip.beat(now_s)
        return Round(self.gossip.partners(now_s, dice), self._settle(now_s))

    def rumour(self, now_s: float) -> Rumour:
        return Rumour(
            tuple(self.gossip.living(now_s)),
            tuple(self.directory.servers.values()),
            tuple(self.directory.kept()),
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
        kept = (peer for peer, is_kept in rumour.peers if is_kept)
        owed = self.directory.hear_kept(rumour.speaker, kept)
        return [*(one for one in handed_over if one.to != rumour.speaker), *owed]

    def hear_announcement(self, server: ServerInfo, lines: Iterable[Line]) -> list[PassOn]:
        self.directory.hear_servers([server])
        return self.directory.hear_lines(lines)

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
                self.directory.kept_count(info.name),
            )
            for info in sorted(self.gossip.known(), key=lambda info: info.name)
        ]

    def _settle(self, now_s: float) -> list[PassOn]:
        living = frozenset(alive.manager.name for alive in self.gossip.living(now_s))
        if living == self.directory.ring.managers:
            return []
        return self.directory.settle(Ring(living, self._tokens))
