"""Snapshots for the planner's tests: drawn as the paper's figures are, or generated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from hypothesis import strategies as st

from load_monitor.planning.planner import plan
from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import (
    UNKNOWN,
    ClusterSnapshot,
    Done,
    MemberLoad,
    SectionLoad,
    ServerLoad,
)
from tests.unit.cluster.test_figures import drawn, printed
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind, target
from utuple.model.section import Section, equal_sections

NOW_S = 10_000.0
POLICY = Policy()


def calm(name: str, processing: float = 0.3, memory: float = 0.3, **more: object) -> ServerLoad:
    return replace(ServerLoad(name, processing, memory, 1_000), **more)  # type: ignore[arg-type]


def busy(name: str, processing: float = 0.95) -> ServerLoad:
    return calm(name, processing, processing_high=True)


def asked(name: str, searches: float, processing: float = 0.95) -> ServerLoad:
    """Overloaded, so much of it by EFs and searches."""
    return replace(busy(name, processing), searches=searches)


def full(name: str, memory: float = 0.9) -> ServerLoad:
    return calm(name, memory=memory, memory_high=True)


def silent(name: str) -> ServerLoad:
    return calm(name, silent_s=POLICY.silent_s + 1)


def cluster(
    figure: str,
    *servers: ServerLoad,
    empty: Iterable[str] = (),
    under_way: tuple[Move, ...] = (),
    recent: tuple[Done, ...] = (),
    arrivals: dict[int, float] | None = None,
) -> ClusterSnapshot:
    """The lines of a figure; members not spoken of are calm. `empty` members hold nothing anywhere, and
    `arrivals` are those of each member that is on in the line that starts there."""
    lines = drawn(figure)
    known = {server.name: server for server in servers}
    for line in lines:
        for member in line.members:
            known.setdefault(member.name, calm(member.name))
    rates = arrivals or {}
    return ClusterSnapshot(
        NOW_S,
        tuple(known.values()),
        tuple(_section(line, set(empty), rates.get(line.section.start, 100.0)) for line in lines),
        under_way,
        recent,
    )


def _section(line: Line, empty: set[str], rate: float) -> SectionLoad:
    members = (
        MemberLoad(10, 1, rate)
        if member.accumulatable
        else replace(UNKNOWN, is_empty=member.name in empty)
        for member in line.members
    )
    return SectionLoad(line, tuple(members))


def moves(snapshot: ClusterSnapshot, policy: Policy = POLICY) -> list[Move]:
    return list(plan(snapshot, policy).moves)


class Builder(Protocol):
    def __call__(self, section: Section, member: str, helper: str = "", epoch: int = 1) -> Move: ...


def _builder(kind: MoveKind) -> Builder:
    def build(section: Section, member: str, helper: str = "", epoch: int = 1) -> Move:
        return Move(kind, section, epoch, member, helper)

    return build


help_processing, help_memory, flip_on, flip_off, split, drain, release, suspend, return_, *_ = map(
    _builder, MoveKind
)
"""Moves of lines that have not changed yet, as those of a figure."""


def table_after(snapshot: ClusterSnapshot, made: Iterable[Move], key: int = 0) -> str:
    """The figure once these moves are made."""
    by_section = {move.section: move for move in made}
    lines: list[Line] = []
    for load in snapshot.lines:
        move = by_section.pop(load.line.section, None)
        lines += (load.line,) if move is None else target(replace(move, key=key), load.line)
    assert not by_section
    return printed(lines)


# ------------------------------------------------------------------------------------------- generated

NAMES = [f"s{number}" for number in range(7)]
shares = st.sampled_from([0.0, 0.1, 0.3, 0.44, 0.5, 0.6, 0.7, 0.81, 0.95, 1.3])


MOODS: dict[str, dict[str, float]] = {
    "idle": {"processing": 0.01, "memory": 0.1},
    "calm": {"processing": 0.3, "memory": 0.3, "processing_lately": 0.3},
    "paused": {"processing": 0.1, "memory": 0.2, "processing_lately": 0.7},
    "hot": {"processing": 0.95, "memory": 0.3, "processing_high": True},
    "full": {"processing": 0.2, "memory": 0.9, "memory_high": True},
    "both": {"processing": 1.3, "memory": 0.85, "processing_high": True, "memory_high": True},
    "easing": {"processing": 0.7, "memory": 0.2, "processing_high": True},
    "silent": {"processing": 0.3, "memory": 0.3, "silent_s": 16.0},
    "draining": {"processing": 0.3, "memory": 0.3, "draining": True},
    "gone": {"processing": 0.9, "silent_s": 500.0, "draining": True, "processing_high": True},
}
moods = st.sampled_from([*["idle", "calm"] * 5, *["hot", "draining", "silent"] * 2, *MOODS])


flag_kinds = st.sampled_from([*["on", "off"] * 4, "suspended"])


@st.composite
def server_loads(draw: st.DrawFn, name: str) -> ServerLoad:
    if draw(st.integers(0, 3)) == 0:
        return ServerLoad(name, draw(shares), draw(shares))
    return ServerLoad(name, **MOODS[draw(moods)])  # type: ignore[arg-type]


@st.composite
def section_loads(draw: st.DrawFn, line: Line) -> SectionLoad:
    loads = [
        MemberLoad(
            draw(st.integers(0, 3)),
            0,
            draw(st.sampled_from([0.0, 1.0, 50.0])) if member.accumulatable else 0.0,
            draw(st.sampled_from([False, False, True])),
        )
        for member in line.members
    ]
    return SectionLoad(line, tuple(loads), draw(st.booleans()))


@st.composite
def snapshots(draw: st.DrawFn) -> ClusterSnapshot:
    """Anything can be wrong at once: hot, full, silent, draining, suspended, new."""
    servers = tuple(draw(server_loads(name)) for name in NAMES)
    lines = []
    for section in equal_sections(draw(st.integers(2, 7))):
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
        flags = draw(st.lists(flag_kinds, min_size=len(names), max_size=len(names)))
        flags[0] = draw(st.sampled_from(["on", "off"]))
        if "on" not in flags:
            flags[draw(st.integers(0, len(flags) - 1))] = "on"
        members = (
            Member(name, flag == "on", flag == "suspended")
            for name, flag in zip(names, flags, strict=True)
        )
        lines.append(draw(section_loads(Line(section, 1, tuple(members)))))
    return ClusterSnapshot(NOW_S, servers, tuple(lines))


@st.composite
def snapshots_with_a_past(draw: st.DrawFn) -> ClusterSnapshot:
    """The moves of a first plan are partly under way, partly done a while ago."""
    snapshot = draw(snapshots())
    planned = plan(snapshot, POLICY).moves
    ages_s = [draw(st.sampled_from([None, 1.0, 31.0, 61.0, 301.0, 4_000.0])) for _ in planned]
    pairs = list(zip(planned, ages_s, strict=True))
    return replace(
        snapshot,
        under_way=tuple(move for move, age_s in pairs if age_s is None),
        recent=tuple(Done(move, NOW_S - age_s) for move, age_s in pairs if age_s is not None),
    )


any_snapshots = st.one_of(snapshots(), snapshots_with_a_past())
