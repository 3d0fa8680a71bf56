"""What a decision about servers and machines is made from, as values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from utuple.model.settings import above, whole

CPU_MAX = 1_000_000
_NUMBER = re.compile(r"[0-9]+$")


@dataclass(frozen=True, slots=True)
class Machine:
    """What servers run on."""

    name: str
    cpu: int
    memory_mb: float
    ready: bool = True

    def __post_init__(self) -> None:
        whole("cpu", self.cpu, 1, CPU_MAX)
        above("memory_mb", self.memory_mb)


@dataclass(frozen=True, slots=True)
class Provisioned:
    """A server, as who made it knows it."""

    name: str
    machine: str = ""
    waits: bool = False
    """It is asked for, and has no place yet."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a provisioner has made and not deleted."""

    machines: tuple[Machine, ...] = ()
    servers: tuple[Provisioned, ...] = ()
    next_server: int = 1
    """The first number that no server has had: names are used once."""


@dataclass(frozen=True, slots=True)
class SeenServer:
    name: str
    machine: str = ""
    """Where it runs; empty: it waits for a place, or runs where nobody counts."""
    waits: bool = False
    """It is asked for, and has no place: only where the provisioner places servers itself."""
    serves: bool = True
    processing: float = 0.0
    processing_lately: float = 0.0
    """The same, but falling slowly (`ServerLoad`)."""
    memory: float = 0.0
    leaving: bool = False
    is_out: bool = False
    """It is leaving, is in no line, and nothing moves that is about it: nothing is lost with it."""
    is_ours: bool = True
    """The provisioner knows it. Another one counts, but is never taken away."""


@dataclass(frozen=True, slots=True)
class Seen:
    now_s: float
    servers: tuple[SeenServer, ...]
    machines: tuple[Machine, ...] = ()
    settling: str = ""
    """Why load has not settled yet, in words; empty: it has."""
    growth_per_s: float = 0.0
    """By how much the servers' summed processing load grows."""
    next_server: int = 1
    """The first number that no server has had: names are used once."""
    floor: int = 0
    """At least so many servers, because a forecast says so."""

    @property
    def current(self) -> tuple[SeenServer, ...]:
        """Those that do the work: they serve, and stay."""
        return tuple(s for s in self.servers if s.serves and not s.leaving and not s.waits)

    def on(self, machine: str) -> int:
        return sum(server.machine == machine for server in self.servers)


def number_of(name: str) -> int:
    """The number a name ends with: those that came last have the highest."""
    found = _NUMBER.search(name)
    return int(found[0]) if found else 0


def next_number(names: Iterable[str]) -> int:
    return max(map(number_of, names), default=0) + 1
