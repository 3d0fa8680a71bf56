"""What a plan is made from: the cluster's loads and lines at one moment, as values. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from utuple.cluster.line import Line
from utuple.cluster.move import Move
from utuple.errors import InvalidInput
from utuple.model.section import Section


@dataclass(frozen=True, slots=True)
class ServerLoad:
    name: str
    processing: float = 0.0
    """Smoothed busy share, of the writer, of searches and of deliveries; above 1 if its queue says so."""
    memory: float = 0.0
    """Smoothed size of the store as a share of its capacity."""
    capacity_bytes: int = 1
    silent_s: float = 0.0
    """Since it was last heard of."""
    processing_high: bool = False
    """Above T_p for long enough, and not yet below the lower threshold again."""
    memory_high: bool = False
    """The same with T_m."""
    processing_lately: float = 0.0
    """The processing load, but falling slowly: what the server may have to bear again soon."""
    draining: bool = False
    """The operator wants it out of every line."""
    left: tuple[Section, ...] = ()
    """What it was drained of, and so never joins again."""
    shipments: int = 0
    """Drains whose last words its heirs have not heard: it may not be stopped yet."""
    searches: float = 0.0
    """The part of the processing load that help does not relieve: EFs, CAs and reads go to every member."""

    @property
    def spread(self) -> float:
        """The part that help relieves: EAs and CFs, and their deliveries."""
        return max(0.0, self.processing - self.searches)

    def __post_init__(self) -> None:
        if not (
            0 <= self.processing < math.inf
            and 0 <= self.memory < math.inf
            and 0 <= self.silent_s < math.inf
            and 0 <= self.processing_lately < math.inf
            and 0 <= self.searches < math.inf
        ):
            self._refuse()
        if self.capacity_bytes <= 0:
            raise InvalidInput("capacity_bytes", self.capacity_bytes, "must be above 0")

    def _refuse(self) -> NoReturn:
        for field in ("processing", "memory", "silent_s", "processing_lately", "searches"):
            if not 0 <= getattr(self, field) < math.inf:
                raise InvalidInput(field, getattr(self, field), "must be a number, at least 0")
        raise AssertionError("only a load that is no load is refused")


@dataclass(frozen=True, slots=True)
class MemberLoad:
    """What one member says about one section."""

    rows: int = 0
    """EAs and CFs stored."""
    templates: int = 0
    """EFs and CAs stored: what help copies, so what a move costs."""
    arrival_per_s: float = 0.0
    """Registrations per second, smoothed: its part of the server's processing load."""
    is_empty: bool = False
    """It has said that it holds no EA and no CF of the section. Not said is not empty."""
    searches: float = 0.0
    """Its share of time for EFs and searches of the section."""


UNKNOWN = MemberLoad()


@dataclass(frozen=True, slots=True)
class SectionLoad:
    line: Line
    members: tuple[MemberLoad, ...]
    """In the order of the line's members."""
    splittable: bool = True
    """It has more than one key: False for a section of one hot key, which only help can relieve."""

    def __post_init__(self) -> None:
        if len(self.members) != len(self.line.members):
            raise InvalidInput("members", len(self.members), f"must be those of {self.line}")


@dataclass(frozen=True, slots=True)
class Done:
    """A move that ended, whether it was made or given up: both cost."""

    move: Move
    at_s: float


@dataclass(frozen=True, slots=True)
class Trend:
    """How the demand of the whole cluster grows."""

    processing_per_s: float = 0.0
    """In servers: 1.0 is one more server, always busy, every second."""
    memory_bytes_per_s: float = 0.0
    span_s: float = math.inf
    """How far back this was looked at: a line says nothing about a longer time to come."""


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    now_s: float
    servers: tuple[ServerLoad, ...]
    lines: tuple[SectionLoad, ...]
    """In the order of the hash space. Parts nothing is known of may be missing: they are left alone."""
    under_way: tuple[Move, ...] = ()
    recent: tuple[Done, ...] = ()
    """At least those of the policy's limit_window_s."""
    trend: Trend = Trend()
    announced: tuple[Move, ...] = ()
    """Decided, and somebody is still to be told: they are in no other's way, but who takes part must not be stopped for good."""

    def __post_init__(self) -> None:
        names = {server.name for server in self.servers}
        if len(names) != len(self.servers):
            raise InvalidInput("servers", len(self.servers), "each server is named once")
        for before, after in pairwise(self.lines):
            if before.line.section.end > after.line.section.start:
                raise InvalidInput("lines", str(after.line), "must be in order and not overlap")
        members = {member.name for load in self.lines for member in load.line.members}
        if members <= names:
            return
        for load in self.lines:
            for member in load.line.members:
                if member.name not in names:
                    raise InvalidInput("servers", member.name, f"is missing, yet in {load.line}")
