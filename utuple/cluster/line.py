"""A line: a section, its epoch, and who serves it. A row of the assignment table (figure 3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from utuple.cluster.layout import NO_LAYOUT, Layout
from utuple.cluster.past import History
from utuple.errors import InvalidInput
from utuple.model.section import Section, equal_sections
from utuple.model.utuple import UTuple
from utuple.model.value import check_name

FIRST_EPOCH = 1


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    accumulatable: bool = True
    suspended: bool = False
    """Silent for too long: EFs and CAs do not wait for it until it has caught up."""

    def __post_init__(self) -> None:
        check_name("member", self.name)
        if self.suspended and self.accumulatable:
            raise InvalidInput("member", self.name, "a suspended member is not accumulatable")

    def __str__(self) -> str:
        return f"{self.name} {'?' if self.suspended else int(self.accumulatable)}"


@dataclass(frozen=True, slots=True)
class Line:
    section: Section
    epoch: int
    members: tuple[Member, ...]
    layout: Layout = NO_LAYOUT
    """How its EFs are partitioned; without axes every member keeps every EF."""
    past: History = ()
    """Earlier layouts, whose EAs may still lie at members that do not keep an EF by this one."""
    accumulatable: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The members that are: every EA asks for them."""

    def __post_init__(self) -> None:
        if self.epoch < FIRST_EPOCH:
            raise InvalidInput("epoch", self.epoch, f"must be at least {FIRST_EPOCH}")
        if len({member.name for member in self.members}) != len(self.members):
            raise InvalidInput("members", str(self), "each server is named once")
        able = tuple(member.name for member in self.members if member.accumulatable)
        if not able:
            raise InvalidInput("members", str(self), "at least one member is accumulatable")
        object.__setattr__(self, "accumulatable", able)
        if self.layout.axes:
            self._check_layout()
        elif self.past:
            rule = "only a partitioned line has earlier layouts: else every EF visits every member"
            raise InvalidInput("past", len(self.past), rule)

    def _check_layout(self) -> None:
        """The home owns every segment, beside others. It keeps every EF, so that it can: it is the second member for each
        EA when another is down, and what somebody gives up it has already."""
        strangers = sorted(self.layout.owners.difference(self.accumulatable))
        if strangers:
            rule = f"who owns a segment is a member that is on, which {', '.join(strangers)} is not"
            raise InvalidInput("layout", str(self.layout), rule)
        for axis in self.layout.axes:
            if not all(self.home in owners for owners in axis.owners):
                rule = f"the home, {self.home}, owns every segment of a partitioned line"
                raise InvalidInput("layout", axis.dimension, rule)

    @property
    def home(self) -> str:
        return self.members[0].name

    @property
    def serving(self) -> tuple[Member, ...]:
        """The members an EF or CA must reach: all that are not suspended."""
        return tuple(member for member in self.members if not member.suspended)

    def keepers(self, formal: UTuple) -> frozenset[str]:
        """Who keeps this EF: the home, and who is on; of a partitioned line who owns a segment that it overlaps."""
        owners = self.layout.keepers(formal) if self.layout.axes else self.accumulatable
        return frozenset((self.home, *owners))

    def visited(self, formal: UTuple) -> frozenset[str]:
        """Who must accept this EF (R2), of those that serve: who keeps it, and who may hold a match of it from before. Of a line
        that is not partitioned that is everyone."""
        names = frozenset(member.name for member in self.serving)
        if not self.layout.axes:
            return names
        return names & self.keepers(formal).union(self.older_holders(formal))

    def older_holders(self, formal: UTuple) -> frozenset[str]:
        """Who may hold a match of this EF that was taken by an earlier layout."""
        names = frozenset(member.name for member in self.serving) if self.past else frozenset()
        return frozenset().union(*(one.holders(formal, names) for one in self.past))

    def may_hold_older(self, name: str) -> bool:
        """May this member hold EAs outside of its segments?"""
        return any(one.upto_at(name) != 0 for one in self.past)

    def member(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)

    def within(self, section: Section) -> Line:
        """The same line on another section: what is left of it after a cut."""
        return self if section == self.section else replace(self, section=section)

    def __str__(self) -> str:
        said = f"{self.section} e{self.epoch} {', '.join(map(str, self.members))}"
        return f"{said}, partitioned by {self.layout}" if self.layout.axes else said


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Where a program listens. Names are for ever; addresses may change when it moves."""

    name: str
    address: str
    role: str = "server"
    """server, sca or manager"""
    since_us: int = 0
    """When it started there: the newer address wins."""


NO_TABLE = "no table yet; `utuple found NAME…` gives a new cluster its first one"
"""For logs and errors of programs that wait for it."""

NO_SCA = (
    "no sCA server: devices (serve) and simple commands wait for one; start one with python -m sca_server "
    "--name sca-1 --listen HOST:PORT --managers HOST:PORT,…"
)
"""For whoever looks at a cluster, and for errors of those who wait for one."""


def first_table(names: list[str]) -> list[Line]:
    """The table of a new cluster: one even section a server."""
    sections = equal_sections(len(names))
    return [
        Line(section, FIRST_EPOCH, (Member(name),))
        for section, name in zip(sections, names, strict=True)
    ]
