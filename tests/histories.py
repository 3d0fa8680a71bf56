"""Histories of a table: what help, split, flags, release, suspension and merges make of it, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from utuple.cluster import changes
from utuple.cluster.line import Line, first_table
from utuple.errors import InvalidInput
from utuple.model.section import Section

SERVERS = tuple(f"server-{number}" for number in range(1, 7))


@dataclass(frozen=True)
class History:
    final: list[Line]
    ever: list[Line]
    """Every line that was ever true, in the order they came about."""
    changed: list[tuple[Line, list[Line]]]
    """Each change: the line before (of a merge the two as one), its lines after."""


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
    st.integers(0, 7),
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


_MERGE = 7


def history(servers: int, divided: bool, picked: list[Choice]) -> History:
    """`divided`: every section is there in two halves at first, which can be merged."""
    lines = first_table(list(SERVERS[:servers]))
    if divided:
        lines = [line.within(half) for line in lines for half in _halves(line.section)]
    ever = list(lines)
    changed = []
    for choice in picked:
        at = choice.line % len(lines)
        until = at + 2 if choice.change == _MERGE else at + 1
        try:
            before, after = _changed(lines[at:until], choice)
        except InvalidInput:
            continue
        changed.append((before, after))
        lines[at:until] = after
        ever += after
    return History(lines, ever, changed)


def _changed(lines: list[Line], choice: Choice) -> tuple[Line, list[Line]]:
    if choice.change != _MERGE:
        return lines[0], change(lines[0], choice)
    if len(lines) < 2:
        raise InvalidInput("merge", lines[0], "is the last")
    before = changes.joined(*lines)
    return before, [changes.merged(before)]


def _halves(section: Section) -> tuple[Section, Section]:
    return section.split_at((section.start + section.end) // 2)


histories = st.builds(
    history, st.integers(1, len(SERVERS)), st.booleans(), st.lists(choices, max_size=30)
)
