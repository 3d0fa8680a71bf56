"""Which managers live. Each counts its own heartbeat and passes on the highest counts it has heard; one
whose count stands still is suspected, then dead. A manager that starts again is newer than its former
self by its starting time, whatever its count. Pure: time and dice are arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from utuple.cluster.line import ServerInfo

Dice = Callable[[int], int]
"""dice(n) is one of 0 … n-1."""


class Health(Enum):
    ALIVE = "alive"
    SUSPECTED = "suspected"
    """Silent for a while: still on the ring, asked last."""
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Alive:
    manager: ServerInfo
    beat: int
    kept: int = 0
    """How many lines it holds, for who looks."""

    @property
    def version(self) -> tuple[int, int]:
        return self.manager.since_us, self.beat


@dataclass(frozen=True, slots=True)
class Timeouts:
    suspect_s: float
    dead_s: float
    forget_s: float


class Gossip:
    def __init__(self, own: ServerInfo, seeds: Iterable[str], timeouts: Timeouts) -> None:
        self._own = Alive(own, 1)
        self._timeouts = timeouts
        self._seeds: dict[str, str | None] = dict.fromkeys(seeds)
        """Address given on the command line -> the manager found there."""
        self._heard: dict[str, tuple[Alive, float]] = {}
        self.namesake: str | None = None
        """Where another manager of our name was last heard of: an operator's mistake."""
        self._turns: list[str] = []
        """Who lives and has not had its turn yet in this time round, the next first."""

    @property
    def own(self) -> ServerInfo:
        return self._own.manager

    def beat(self, now_s: float, kept: int = 0) -> None:
        self._own = replace(self._own, beat=self._own.beat + 1, kept=kept)
        for name, (_, seen_s) in list(self._heard.items()):
            if now_s - seen_s >= self._timeouts.forget_s:
                del self._heard[name]

    def hear(self, rumoured: Iterable[Alive], now_s: float) -> None:
        for alive in rumoured:
            name = alive.manager.name
            if name == self.own.name:
                self._hear_of_oneself(alive)
                continue
            known = self._heard.get(name)
            if known is None or alive.version > known[0].version:
                self._heard[name] = alive, now_s

    def met(self, address: str, name: str) -> None:
        """This manager answered at that address, however it calls its address itself."""
        if address in self._seeds:
            self._seeds[address] = name

    def health(self, name: str, now_s: float) -> Health:
        if name == self.own.name:
            return Health.ALIVE
        known = self._heard.get(name)
        silent_s = now_s - known[1] if known else float("inf")
        if silent_s >= self._timeouts.dead_s:
            return Health.DEAD
        return Health.SUSPECTED if silent_s >= self._timeouts.suspect_s else Health.ALIVE

    def living(self, now_s: float) -> list[Alive]:
        """All but the dead, ourselves first. Only these are passed on: the dead may be forgotten."""
        dead_s = self._timeouts.dead_s
        others = (alive for alive, seen_s in self._heard.values() if now_s - seen_s < dead_s)
        return [self._own, *others]

    def known(self) -> list[ServerInfo]:
        return [self.own, *(alive.manager for alive, _ in self._heard.values())]

    def kept(self, name: str) -> int:
        """How many lines this manager holds, as of its last beat."""
        if name == self.own.name:
            return self._own.kept
        known = self._heard.get(name)
        return known[0].kept if known else 0

    def address(self, name: str) -> str | None:
        known = self._heard.get(name)
        return known[0].manager.address if known else None

    def partners(self, now_s: float, dice: Dice) -> list[str]:
        """Addresses to gossip with now: one that lives, one that is dead (it may be back, or have been
        cut off), and every seed that is not known to live."""
        living: dict[str, str] = {}
        dead: list[str] = []
        for name, (alive, _) in sorted(self._heard.items()):
            if self.health(name, now_s) is Health.DEAD:
                dead.append(alive.manager.address)
            else:
                living[name] = alive.manager.address
        chosen = [self._in_turn(living, dice)] if living else []
        chosen += [dead[dice(len(dead))]] if dead else []
        known = living.values()
        seeds = [seed for seed in self._seeds if self._is_missing(seed, known, now_s)]
        return list(dict.fromkeys(chosen + seeds))

    def _in_turn(self, living: dict[str, str], dice: Dice) -> str:
        """Everyone once before anyone again, in an order that is drawn anew each time round. With an independent draw at every
        beat a few of fifty managers would not meet for minutes, and what only those two compare would stay unsettled."""
        self._turns = [name for name in self._turns if name in living]
        if not self._turns:
            left = list(living)
            self._turns = [left.pop(dice(len(left))) for _ in living]
        return living[self._turns.pop(0)]

    def _is_missing(self, seed: str, living: Collection[str], now_s: float) -> bool:
        if seed == self.own.address or seed in living:
            return False
        name = self._seeds[seed]
        return name is None or self.health(name, now_s) is Health.DEAD

    def _hear_of_oneself(self, alive: Alive) -> None:
        """A former self with a clock that ran ahead would hide us: outdo it."""
        if alive.version <= self._own.version:
            return
        if alive.manager.address != self.own.address:
            self.namesake = alive.manager.address
        newer = replace(self.own, since_us=alive.manager.since_us + 1)
        self._own = replace(self._own, manager=newer)
