"""Histories of a table: what help, split, flags, release and suspension make of it, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from utuple.cluster import changes
from utuple.cluster.line import Line, first_table
from utuple.errors import InvalidInput

SERVERS = tuple(f"server-{number}" for number in range(1, 7))


@dataclass(frozen=True)
class History:
    final: list[Line]
    ever: list[Line]
    """Every line that was ever true, in the order they came about."""
    changed: list[tuple[Line, list[Line]]]
    """Each change: the line before, its lines after."""


@dataclass(frozen=True)
class Choice:
    """Numbers a change is picked by; what they cannot mean is skipped."""

    line: int
    change: int
    one: int
    other: int
    where: int


choices = st.builds(
    Choice,
    st.integers(0, 99),
    st.integers(0, 6),
    st.integers(0, 99),
    st.integers(0, len(SERVERS) - 1),
    st.integers(1, 99),
)


def change(line: Line, choice: Choice) -> list[Line]:
    one = line.members[choice.one % len(line.members)].name
    other = SERVERS[choice.other]
    match choice.change:
        case 0:
            return [changes.helped(line, one, other)]
        case 1:
            return [changes.helped(line, one, other, memory=True)]
        case 2:
            size = line.section.end - line.section.start
            key = line.section.start + size * choice.where // 100
            return list(changes.split(line, key, one, other))
        case 3:
            return [changes.flagged(line, one, accumulatable=False)]
        case 4:
            return [changes.flagged(line, one, accumulatable=True)]
        case 5:
            return [changes.released(line, one)]
        case _:
            return [changes.suspended(line, one)]


def history(servers: int, picked: list[Choice]) -> History:
    lines = first_table(list(SERVERS[:servers]))
    ever = list(lines)
    changed = []
    for choice in picked:
        at = choice.line % len(lines)
        try:
            after = change(lines[at], choice)
        except InvalidInput:
            continue
        changed.append((lines[at], after))
        lines[at : at + 1] = after
        ever += after
    return History(lines, ever, changed)


histories = st.builds(history, st.integers(1, len(SERVERS)), st.lists(choices, max_size=30))
