"""Fifty managers in one thread on a clock of their own: the machines are the real ones, messages are encoded to be weighed.

Nothing is lost or late here: `tests/unit/assignment_manager` has the bad weather.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from assignment_manager.directory import PassOn
from assignment_manager.gossip import Timeouts
from assignment_manager.manager import Manager, Rumour
from assignment_manager.wire import passed_on_to_wire, rumour_to_wire
from utuple.cluster.line import Line, ServerInfo

GOSSIP_S = 0.5
_TIMEOUTS = Timeouts(suspect_s=2.0, dead_s=4.0, forget_s=86_400.0)


@dataclass
class Ring:
    managers: int
    dice: Random
    now_s: float = 0.0
    sent_bytes: int = 0
    everyone: dict[str, Manager] = field(default_factory=dict)
    """By address."""

    def __post_init__(self) -> None:
        names = [f"manager-{number}" for number in range(1, self.managers + 1)]
        seeds = [f"{name}:1" for name in names[:2]]
        for name in names:
            own = ServerInfo(name, f"{name}:1", "manager", 1)
            self.everyone[own.address] = Manager(own, seeds, _TIMEOUTS)

    def round(self) -> None:
        """One beat of every manager, in an order of its own."""
        self.now_s += GOSSIP_S
        for manager in self.dice.sample(list(self.everyone.values()), len(self.everyone)):
            beat = manager.tick(self.now_s, self.dice.randrange)
            self._hand_over(manager, beat.pass_on)
            for address in beat.gossip_with:
                self._talk(manager, address)

    def announce(self, lines: list[Line], to: Manager) -> None:
        """By their homes, to one manager: the others hear of them by gossip and by what is handed over."""
        for line in lines:
            home = ServerInfo(line.home, f"{line.home}:1", "server", 1)
            self._hand_over(to, to.hear_announcement(home, [line]))

    def messages_for(self, key: int, at: Manager) -> int:
        """Asked of other managers until this one can answer."""
        found = at.lookup([key])
        if found.line[0]:
            return 0
        for holders in found.elsewhere:
            for asked, name in enumerate(at.in_asking_order(holders, self.now_s), 1):
                if self._named(name).lookup([key]).line[0]:
                    return asked
        raise AssertionError(f"nobody answers for {key}")

    def _talk(self, speaker: Manager, address: str) -> None:
        listener = self.everyone[address]
        said = speaker.rumour(self.now_s, listener.gossip.own.name)
        for _ in range(2):
            answer = self._say(speaker, listener, said)
            said = speaker.rumour(self.now_s, answer.speaker, answer)
            if not said.tells:
                return

    def _say(self, speaker: Manager, listener: Manager, rumour: Rumour) -> Rumour:
        self.sent_bytes += rumour_to_wire(rumour).ByteSize()
        self._hand_over(listener, listener.hear_rumour(rumour, self.now_s))
        answer = listener.rumour(self.now_s, rumour.speaker, rumour)
        self.sent_bytes += rumour_to_wire(answer).ByteSize()
        at = listener.gossip.own.address
        self._hand_over(speaker, speaker.hear_rumour(answer, self.now_s, at))
        return answer

    def _hand_over(self, by: Manager, batches: list[PassOn]) -> None:
        for batch in batches:
            self.sent_bytes += passed_on_to_wire(by.gossip.own, batch).ByteSize()
            self._named(batch.to).hear_passed_on(batch.lines, batch.servers)
            by.directory.passed_on(batch)

    def _named(self, name: str) -> Manager:
        return self.everyone[f"{name}:1"]
