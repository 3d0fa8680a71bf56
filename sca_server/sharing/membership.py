"""Who the sCA servers are, as this one knows them: who joined, who left, who is silent. Pure.

Each sCA server exchanges with every other, again and again, the newest word it has heard about each name. One that does not
answer for `silent_s` is said to be *away*: its share goes to the others. Should it be alive after all, it hears so and says
the contrary with a newer word. It is slow then, or cannot be reached from here: so each time it is believed for twice as long,
until it has been in nobody's doubt for a while. Two that are cut off from each other would else share the devices out anew for
ever, and so would servers of a machine that has too much to do: thousands of devices that move from one to the other and back are
the last thing it needs.

Nobody decides alone and nothing is durable: the newest word about a name wins everywhere, so all who hear each other end up
with the same names. Until they do, two servers may both think that a device is theirs, or that it is the other's. That costs
time and no truth, because `tenure` has a server deny nothing before the others agree and devices have had time to come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from utuple.cluster.line import ServerInfo
from utuple.cluster.shares import AWAY, LEFT, SCA, Shares, hear_scas, shares_of

_MOST_DOUBLINGS = 6
"""One that is alive and cannot be reached from here is believed for a minute or two at most."""
_CALM_S = 60.0
"""One that answers and was not wrongly said to be away for so long is believed no longer than any other."""
_REPLY_US = 1_000
"""Who says that it is not away does so with the next number. A new life begins with the time of its start."""


@dataclass(slots=True)
class _Peer:
    seen_s: float
    """When it last gave a sign of life."""
    revived: int = 0
    """How often it was said to be away, and was not."""
    revived_s: float = 0.0
    """When the last time was."""
    agrees_on: Shares | None = None
    """As it last answered."""


class Membership:
    def __init__(self, own: ServerInfo, *, silent_s: float) -> None:
        self.own = own
        self._silent_s = silent_s
        self._infos: dict[str, ServerInfo] = {own.name: own}
        self._peers: dict[str, _Peer] = {}
        self.shares = Shares([own.name])

    @property
    def infos(self) -> list[ServerInfo]:
        """Everybody that was ever heard of: those that are gone are told of, too, or nobody would forget them."""
        return list(self._infos.values())

    @property
    def gone(self) -> list[ServerInfo]:
        return [info for info in self._infos.values() if info.role != SCA]

    @property
    def peers(self) -> list[ServerInfo]:
        """The others that serve."""
        return [
            info for info in self._infos.values() if info.role == SCA and info.name != self.own.name
        ]

    @property
    def is_leaving(self) -> bool:
        return self.own.role == LEFT

    def hear(self, infos: Iterable[ServerInfo], now_s: float) -> bool:
        """From anybody. True: something is news, and is to be told on."""
        before = dict(self._infos)
        news = hear_scas(self._infos, infos)
        for info in news:
            old, peer = before.get(info.name), self._peers.get(info.name)
            if peer is None or old is None or old.address != info.address:
                self._peers[info.name] = _Peer(now_s)
            elif info.role == SCA:
                peer.seen_s = now_s
                if old.role == AWAY and info.since_us - old.since_us < _REPLY_US:
                    peer.revived, peer.revived_s = peer.revived + 1, now_s
        self._speak_for_itself()
        return self._reckon() or bool(news)

    def _speak_for_itself(self) -> None:
        """Others may think it away, or have its life before this one in mind. One of its name at another address that
        began later is left alone: two of one name would take turns for ever."""
        said = self._infos[self.own.name]
        if said == self.own:
            return
        if said.role == SCA and said.address != self.own.address:
            self._infos[self.own.name] = self.own
            return
        self.own = replace(self.own, since_us=said.since_us + 1)
        self._infos[self.own.name] = self.own

    def answered(self, name: str, infos: Iterable[ServerInfo], now_s: float) -> bool:
        """A peer has told us what it knows, after it had heard what we know. True: as of `hear`."""
        told = list(infos)
        is_news = self.hear(told, now_s)
        peer = self._peers.setdefault(name, _Peer(now_s))
        peer.seen_s = now_s
        if now_s - peer.revived_s >= _CALM_S:
            peer.revived = 0
        peer.agrees_on = shares_of(told)
        return is_news

    def look(self, now_s: float) -> bool:
        """Who was silent for too long is away. True: somebody is."""
        found = False
        for info in self.peers:
            peer = self._peers.setdefault(info.name, _Peer(now_s))
            believed_s = self._silent_s * 2 ** min(peer.revived, _MOST_DOUBLINGS)
            if now_s - peer.seen_s >= believed_s:
                self._infos[info.name] = replace(info, role=AWAY, since_us=info.since_us + 1)
                found = True
        return self._reckon() or found

    def leave(self, now_us: int) -> None:
        """For good, and everybody is told."""
        since_us = max(now_us, self.own.since_us + 1)
        self.own = replace(self.own, role=LEFT, since_us=since_us)
        self._infos[self.own.name] = self.own
        self._reckon()

    def doubt(self) -> None:
        """What the others said before says nothing of now."""
        for peer in self._peers.values():
            peer.agrees_on = None

    def all_agree(self) -> bool:
        """Every other that serves shares the devices out as we do, and has acted on it."""
        return all(self._agrees(info.name) for info in self.peers)

    def _agrees(self, name: str) -> bool:
        peer = self._peers.get(name)
        return peer is not None and peer.agrees_on == self.shares

    def _reckon(self) -> bool:
        """True: devices are shared out in another way now."""
        before, self.shares = self.shares, shares_of(self._infos.values())
        return self.shares != before
