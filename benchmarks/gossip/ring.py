"""Fifty managers in one thread on a clock of their own: the machines are the real ones, messages are encoded to be weighed.

Nothing is lost or late here: `tests/virtual` and `tests/unit/assignment_manager` have the bad weather.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from assignment_manager.answers import Answers
from assignment_manager.directory import PassOn
from assignment_manager.gossip import Timeouts
from assignment_manager.manager import Manager, Rumour
from assignment_manager.wire import passed_on_to_wire, rumour_to_wire
from utuple.cluster.line import Line, ServerInfo
from utuple.runtime.announcer import ANNOUNCE_S
from utuple.wire import utuple_pb2 as pb
from utuple.wire.announcing import Announcements, told

GOSSIP_S = 0.5
_TIMEOUTS = Timeouts(suspect_s=2.0, dead_s=4.0, forget_s=86_400.0)
_ANNOUNCE_ROUNDS = round(ANNOUNCE_S / GOSSIP_S)
_CHECK_ROUNDS = 5
_SETTLE_ROUNDS_MAX = 1_000


class Home:
    """A server: it announces its lines to a few managers."""

    def __init__(self, name: str, lines: Iterable[Line]) -> None:
        self.info = ServerInfo(name, f"{name}:1", "server", 1)
        self.lines = list(lines)
        self.announcements = Announcements(lambda: self.info, lambda: self.lines)
        self.heard: dict[str, pb.Heard] = {}
        """By manager: its last answer."""


@dataclass
class Ring:
    managers: int
    dice: Random
    now_s: float = 0.0
    rounds: int = 0
    gossip_bytes: int = 0
    """Rumours and lines handed over, questions and answers."""
    announced_bytes: int = 0
    everyone: dict[str, Manager] = field(default_factory=dict)
    """By name."""
    homes: list[Home] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [f"manager-{number}" for number in range(1, self.managers + 1)]
        seeds = [f"{name}:1" for name in names[:2]]
        for name in names:
            own = ServerInfo(name, f"{name}:1", "manager", 1)
            self.everyone[name] = Manager(own, seeds, _TIMEOUTS)

    @property
    def sent_bytes(self) -> int:
        return self.gossip_bytes + self.announced_bytes

    def round(self) -> None:
        """One beat of every manager, in an order of its own; every fourth time the servers announce themselves."""
        self.now_s += GOSSIP_S
        self.rounds += 1
        if self.rounds % _ANNOUNCE_ROUNDS == 0:
            for home in self.homes:
                self.announce(home)
        for manager in self.dice.sample(list(self.everyone.values()), len(self.everyone)):
            beat = manager.tick(self.now_s, self.dice.randrange)
            self._hand_over(manager, beat.pass_on)
            for address in beat.gossip_with:
                self._talk(manager, address)

    def settle(self) -> float:
        """Seconds until no two managers have anything to tell each other."""
        for rounds in range(0, _SETTLE_ROUNDS_MAX, _CHECK_ROUNDS):
            if self._is_settled():
                return rounds * GOSSIP_S
            for _ in range(_CHECK_ROUNDS):
                self.round()
        raise AssertionError("the managers do not settle")

    def _is_settled(self) -> bool:
        directories = {name: manager.directory for name, manager in self.everyone.items()}
        if any(len(one.ring.managers) < self.managers for one in directories.values()):
            return False
        return not any(
            directories[one].digest(other).differs(directories[other].digest(one))
            for one, other in combinations(directories, 2)
        )

    def announce(self, home: Home) -> None:
        """As `utuple/runtime/announcer.py` and the manager's service do."""
        for name in sorted(told(home.info, self.everyone)):
            manager, last = self.everyone[name], home.heard.get(name, pb.Heard())
            opening = home.announcements.opening(last)
            wanted = manager.wants_lines(home.info, opening.lines_token)
            last = self._heard(manager, opening, wanted)
            if wanted:
                for portion in home.announcements.following(last):
                    self._hand_over(manager, manager.hear_announcement(home.info, home.lines))
                    last = self._heard(manager, portion, wanted=False)
                manager.has_announced(home.info, opening.lines_token)
            home.heard[name] = last

    def _heard(self, manager: Manager, said: pb.Announcement, wanted: bool) -> pb.Heard:
        living = [alive.manager for alive in manager.gossip.living(self.now_s)]
        heard = Answers(manager.directory).heard(living, wanted, said)
        self.announced_bytes += said.ByteSize() + heard.ByteSize()
        return heard

    def messages_for(self, key: int, at: Manager) -> int:
        """Asked of other managers until this one can answer."""
        found = at.lookup([key])
        if found.line[0]:
            return 0
        for holders in found.elsewhere:
            for asked, name in enumerate(at.in_asking_order(holders, self.now_s), 1):
                if self.everyone[name].lookup([key]).line[0]:
                    return asked
        raise AssertionError(f"nobody answers for {key}")

    def _talk(self, speaker: Manager, address: str) -> None:
        listener = self.everyone[address.removesuffix(":1")]
        said = speaker.rumour(self.now_s, listener.gossip.own.name)
        for _ in range(2):
            answer = self._say(speaker, listener, said)
            said = speaker.rumour(self.now_s, answer.speaker, answer)
            if not said.tells:
                return

    def _say(self, speaker: Manager, listener: Manager, rumour: Rumour) -> Rumour:
        self.gossip_bytes += rumour_to_wire(rumour).ByteSize()
        self._hand_over(listener, listener.hear_rumour(rumour, self.now_s))
        answer = listener.rumour(self.now_s, rumour.speaker, rumour)
        self.gossip_bytes += rumour_to_wire(answer).ByteSize()
        at = listener.gossip.own.address
        self._hand_over(speaker, speaker.hear_rumour(answer, self.now_s, at))
        return answer

    def _hand_over(self, by: Manager, batches: list[PassOn]) -> None:
        for batch in batches:
            self.gossip_bytes += passed_on_to_wire(by.gossip.own, batch).ByteSize()
            self.everyone[batch.to].hear_passed_on(batch.lines, batch.servers)
            by.directory.passed_on(batch)
