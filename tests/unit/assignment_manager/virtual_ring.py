"""Assignment managers in one thread, from a seed: their messages are lost, repeated and overtake one
another; managers die, come back empty and are cut off from each other."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from random import Random

from assignment_manager.directory import PassOn
from assignment_manager.gossip import Timeouts
from assignment_manager.manager import Manager, Rumour
from assignment_manager.wire import rumour_to_wire
from utuple.cluster.line import Line, ServerInfo
from utuple.model.key import HASH_SPACE

TIMEOUTS = Timeouts(suspect_s=2.0, dead_s=4.0, forget_s=1_000.0)
GOSSIP_S = 0.5
ANNOUNCE_S = 2.0


@dataclass
class Weather:
    lost: float = 0.0
    """Share of messages."""
    repeated: float = 0.0
    slow_s: float = 0.01
    """The longest a message is under way: beyond GOSSIP_S they overtake one another."""


class VirtualRing:
    def __init__(self, names: Iterable[str], seed: int, weather: Weather) -> None:
        self.now_s = 0.0
        self.weather = weather
        self.announced: Callable[[], list[Line]] = list
        self.announced_to: Callable[[str], bool] = lambda _: True
        self.managers: dict[str, Manager] = {}
        self._names = list(names)
        self._dice = Random(seed)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._lives = count(1)
        self._cut: list[set[str]] = []
        self.rumours: list[Rumour] = []
        """Every one that was sent, question or answer."""
        for name in self._names:
            self.start(name)
        self._after(0.0, self._announce)

    # --- what happens to it ----------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Empty, knowing the first two by address; with a clock that grows from life to life."""
        own = ServerInfo(name, f"{name}:1", "manager", next(self._lives))
        manager = Manager(own, [f"{seed}:1" for seed in self._names[:2]], TIMEOUTS, tokens=32)
        self.managers[name] = manager
        self._after(self._dice.random() * GOSSIP_S, lambda: self._tick(name, manager))

    def kill(self, name: str) -> None:
        del self.managers[name]

    def cut(self, *sides: Iterable[str]) -> None:
        self._cut = [set(side) for side in sides]

    def run(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self._agenda and self._agenda[0][0] <= until_s:
            self.now_s, _, happen = heapq.heappop(self._agenda)
            happen()
        self.now_s = until_s

    # --- what it answers -------------------------------------------------------------------------

    def ask(self, name: str, key: int) -> tuple[Line | None, int]:
        """The line of a key and how many other managers were asked, as the service does it."""
        manager = self.managers[name]
        found = manager.lookup([key])
        if found.line[0]:
            return found.lines[0], 0
        asked = 0
        for holders in found.elsewhere:
            for other in manager.in_asking_order(holders, self.now_s):
                asked += 1
                if other in self.managers and self._connected(name, other):
                    there = self.managers[other].lookup([key])
                    if there.line[0] and manager.directory.accept(there.lines[0]):
                        return there.lines[0], asked
        return None, asked

    def keys(self, lines: Iterable[Line], more: int = 50) -> list[int]:
        edges = {key for line in lines for key in (line.section.start, line.section.end - 1)}
        return sorted(edges) + [self._dice.randrange(HASH_SPACE) for _ in range(more)]

    @staticmethod
    def bytes_of(rumour: Rumour) -> int:
        return rumour_to_wire(rumour).ByteSize()

    @staticmethod
    def home_of(line: Line) -> ServerInfo:
        return ServerInfo(line.home, f"{line.home}:1")

    # --- how it works ----------------------------------------------------------------------------

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now_s + seconds, next(self._order), happen))

    def _connected(self, one: str, other: str) -> bool:
        return not self._cut or any({one, other} <= side for side in self._cut)

    def _send(self, sender: str, address: str, receive: Callable[[Manager], None]) -> None:
        to = address.removesuffix(":1")

        def arrive() -> None:
            if to in self.managers and self._connected(sender, to):
                receive(self.managers[to])

        copies = 1 + (self._dice.random() < self.weather.repeated)
        for _ in range(copies):
            if self._dice.random() >= self.weather.lost:
                self._after(self._dice.random() * self.weather.slow_s, arrive)

    def _tick(self, name: str, manager: Manager) -> None:
        if self.managers.get(name) is not manager:
            return
        round_ = manager.tick(self.now_s, self._dice.randrange)
        self._pass_on(manager, round_.pass_on)
        for address in round_.gossip_with:
            self._gossip(manager, address)
        self._after(GOSSIP_S, lambda: self._tick(name, manager))

    def _gossip(self, speaker: Manager, address: str) -> None:
        known = {info.address: info.name for info in speaker.gossip.known()}
        self._exchange(speaker, address, speaker.rumour(self.now_s, known.get(address)), calls=2)

    def _exchange(self, speaker: Manager, address: str, rumour: Rumour, calls: int) -> None:
        own = speaker.gossip.own

        def heard(other: Manager) -> None:
            self._pass_on(other, other.hear_rumour(rumour, self.now_s))
            answer = other.rumour(self.now_s, rumour.speaker, rumour)
            self.rumours.append(answer)
            self._send(other.gossip.own.name, own.address, lambda back: answered(back, answer))

        def answered(back: Manager, answer: Rumour) -> None:
            self._pass_on(back, back.hear_rumour(answer, self.now_s, at=address))
            more = back.rumour(self.now_s, answer.speaker, answer)
            if more.tells and calls > 1:
                self._exchange(back, address, more, calls - 1)

        self.rumours.append(rumour)
        self._send(own.name, address, heard)

    def _pass_on(self, sender: Manager, owed: list[PassOn]) -> None:
        own = sender.gossip.own

        def hand(batch: PassOn) -> None:
            def heard(other: Manager) -> None:
                other.hear_passed_on(batch.lines, batch.servers)
                name = other.gossip.own.name
                self._send(name, own.address, lambda back: back.directory.passed_on(batch))

            address = sender.gossip.address(batch.to)
            if address is not None:
                self._send(own.name, address, heard)

        for batch in owed:
            hand(batch)

    def _announce(self) -> None:
        """Each line by its home, to every manager, each time in another order."""
        lines = self.announced()
        self._dice.shuffle(lines)
        for name in self._names:
            for line in lines if self.announced_to(name) else ():
                server = ServerInfo(line.home, f"{line.home}:1", "server", 1)
                self._send("servers", f"{name}:1", self._hearing(server, line))
        self._after(ANNOUNCE_S, self._announce)

    def _hearing(self, server: ServerInfo, line: Line) -> Callable[[Manager], None]:
        def heard(manager: Manager) -> None:
            self._pass_on(manager, manager.hear_announcement(server, [line]))

        return heard
