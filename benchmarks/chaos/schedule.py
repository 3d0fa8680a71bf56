"""Which faults come when: drawn from dice, wave by wave. Pure: the same dice give the same waves.

A wave is one fault, or a few that overlap. The next one begins when everything is healed and has recovered,
so that what a recovery took is never hidden by the fault after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random


class Act(Enum):
    KILL = "kill"
    """SIGKILL; started again when the fault is over."""
    STOP = "stop"
    """SIGSTOP, then SIGCONT: alive, silent, and late."""
    CUT = "cut"
    """Connections are reset, new ones refused."""
    STALL = "stall"
    """Connections stay, but carry nothing, one way or both: a partition."""
    SLOW = "slow"
    """Everything that is carried is late."""
    LEAVE = "leave"
    """An sCA server says goodbye and ends; then it joins again."""


class Way(Enum):
    """Which bytes a stalled connection holds back."""

    BOTH = "both"
    TO = "to"
    FROM = "from"


@dataclass(frozen=True, slots=True)
class Fault:
    act: Act
    target: str
    """A program such as server-2; postgres-2 is the PostgreSQL of server-2."""
    after_s: float
    """From the beginning of its wave."""
    for_s: float
    way: Way = Way.BOTH
    delay_s: float = 0.0

    @property
    def role(self) -> str:
        return role_of(self.target)

    @property
    def kind(self) -> str:
        """As it is counted: kill-server, stop-postgres, cut-manager …"""
        return f"{self.act.value}-{self.role}"

    @property
    def is_kill(self) -> bool:
        """Of a part of the cluster; readers are its users."""
        return self.act is Act.KILL and self.role not in USERS

    def __str__(self) -> str:
        return f"{self.act.value} {self.target} for {self.for_s:.1f} s"


@dataclass(frozen=True, slots=True)
class Wave:
    faults: tuple[Fault, ...]
    pause_s: float
    """Of peace after it."""


USERS = ("reader", "sensors")

WEIGHTS: dict[tuple[Act, str], float] = {
    (Act.KILL, "server"): 7.0,
    (Act.KILL, "postgres"): 5.0,
    (Act.KILL, "manager"): 2.5,
    (Act.KILL, "sca"): 2.0,
    (Act.KILL, "monitor"): 1.0,
    (Act.KILL, "reader"): 2.5,
    (Act.KILL, "sensors"): 0.5,
    (Act.STOP, "server"): 2.0,
    (Act.STOP, "postgres"): 1.5,
    (Act.STOP, "manager"): 0.7,
    (Act.STOP, "sca"): 0.5,
    (Act.STOP, "monitor"): 0.3,
    (Act.CUT, "server"): 2.0,
    (Act.CUT, "manager"): 0.7,
    (Act.CUT, "sca"): 0.5,
    (Act.STALL, "server"): 2.0,
    (Act.STALL, "manager"): 0.7,
    (Act.STALL, "sca"): 0.3,
    (Act.SLOW, "server"): 1.5,
    (Act.SLOW, "manager"): 0.5,
    (Act.LEAVE, "sca"): 1.0,
}
"""How often each comes, against the others: half of all are kills of the cluster, as the bar asks."""

LASTS_S: dict[Act, tuple[float, float]] = {
    Act.KILL: (0.1, 4.0),
    Act.STOP: (0.5, 7.0),
    Act.CUT: (0.3, 5.0),
    Act.STALL: (0.5, 7.0),
    Act.SLOW: (2.0, 8.0),
    Act.LEAVE: (0.5, 6.0),
}
LONG_SHARE, LONG_S = 0.04, 17.0
"""Now and then a silence outlasts gRPC's keepalive, so that it is noticed and not only waited for."""
DELAY_S = (0.01, 0.3)
APART_S = 2.0
"""Faults of one wave begin within this."""
PAUSE_S = (0.2, 2.5)
SIZES = (1, 1, 2, 2, 2, 3)

GROWS_FROM_MINUTES = (1.0, 30.0)
"""A run as long as that gets one more server; each has to be started, and on a small machine they are many."""


def role_of(target: str) -> str:
    return target.rpartition("-")[0] or target


def next_wave(dice: Random, targets: Sequence[str]) -> Wave:
    """The faults of a wave have different targets; nothing is killed twice at once. One sCA server stays when another leaves."""
    roles = Counter(map(role_of, targets))
    choices = {choice: weight for choice, weight in WEIGHTS.items() if choice[1] in roles}
    if roles["sca"] < 2:
        choices.pop((Act.LEAVE, "sca"), None)
    faults: dict[str, Fault] = {}
    for _ in range(dice.choice(SIZES)):
        (act, role) = dice.choices(list(choices), list(choices.values()))[0]
        target = dice.choice(sorted(one for one in targets if role_of(one) == role))
        faults.setdefault(target, _fault(dice, act, target))
        if act is Act.LEAVE:
            choices.pop((act, role))
    return Wave(tuple(faults.values()), dice.uniform(*PAUSE_S))


def additions_s(dice: Random, minutes: float) -> list[float]:
    """When a server is added, from the beginning: early enough to be in many moves."""
    many = sum(minutes >= least for least in GROWS_FROM_MINUTES)
    return [minutes * 60 * (0.5 * number + dice.uniform(0.1, 0.3)) for number in range(many)]


def _fault(dice: Random, act: Act, target: str) -> Fault:
    low_s, high_s = LASTS_S[act]
    # Squared: most are short, some are long.
    for_s = low_s + (high_s - low_s) * dice.random() ** 2
    if act in (Act.STOP, Act.STALL) and dice.random() < LONG_SHARE:
        for_s = LONG_S
    way = dice.choice(list(Way)) if act is Act.STALL else Way.BOTH
    delay_s = dice.uniform(*DELAY_S) if act is Act.SLOW else 0.0
    return Fault(act, target, dice.uniform(0.0, APART_S), for_s, way, delay_s)
