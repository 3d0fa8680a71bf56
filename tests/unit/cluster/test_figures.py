"""Figures 3, 4 and 5 of the paper, literally: a hash space of 0000 to 9999 printed with inclusive ends."""

from __future__ import annotations

import pytest

from utuple.cluster.changes import flagged, helped, released, split, suspended
from utuple.cluster.line import Line, Member
from utuple.errors import InvalidInput
from utuple.model.section import Section

BEFORE = """
0000 – 3000  A1
3001 – 6500  B1
6501 – 9999  X1
"""


def drawn(figure: str) -> list[Line]:
    """The lines of a figure as printed."""
    lines = []
    for row in figure.strip().splitlines():
        span, _, members = row.partition("  ")
        first, last = (int(end) for end in span.split(" – "))
        named = (Member(name[:-1], name[-1] == "1") for name in members.split(", "))
        lines.append(Line(Section(first, last + 1), 1, tuple(named)))
    return lines


def printed(lines: list[Line]) -> str:
    """As the paper prints them: the flag stands right behind the name."""
    members = [
        ", ".join(
            f"{one.name}{'?' if one.suspended else int(one.accumulatable)}" for one in line.members
        )
        for line in lines
    ]
    rows = (
        f"{line.section.start:04d} – {line.section.end - 1:04d}  {named}"
        for line, named in zip(lines, members, strict=True)
    )
    return "\n" + "\n".join(rows) + "\n"


def test_a_drawn_figure_is_printed_as_it_was_drawn() -> None:
    assert printed(drawn(BEFORE)) == BEFORE


def test_figure_3_help_for_processing_load_adds_b_and_leaves_a_on() -> None:
    a, b, x = drawn(BEFORE)
    after = """
0000 – 3000  A1, B1
3001 – 6500  B1
6501 – 9999  X1
"""
    assert printed([helped(a, "A", "B"), b, x]) == after


def test_figure_4_help_for_memory_load_turns_a_off_and_adds_b() -> None:
    a, b, x = drawn(BEFORE)
    after = """
0000 – 3000  A0, B1
3001 – 6500  B1
6501 – 9999  X1
"""
    assert printed([helped(a, "A", "B", memory=True), b, x]) == after


def test_figure_5_a_new_server_helps_the_second_half_of_a_split_section() -> None:
    a, b, x = drawn(BEFORE)
    after = """
0000 – 1500  A1
1501 – 3000  A0, Z1
3001 – 6500  B1
6501 – 9999  X1
"""
    assert printed([*split(a, 1501, "A", "Z"), b, x]) == after


def test_appendix_a_1_a_member_that_is_off_is_turned_on_again() -> None:
    (line,) = drawn("0000 – 3000  A0, B1")
    assert printed([flagged(line, "A", accumulatable=True)]) == "\n0000 – 3000  A1, B1\n"


def test_appendix_a_3_a_home_that_is_released_hands_over_to_the_next_member() -> None:
    (line,) = drawn("0000 – 3000  A0, B1, C1")
    after = released(line, "A")
    assert printed([after]) == "\n0000 – 3000  B1, C1\n"
    assert after.home == "B"


def test_a_suspended_member_does_not_become_home() -> None:
    (line,) = drawn("0000 – 3000  A0, B1, C1")
    assert printed([released(suspended(line, "B"), "A")]) == "\n0000 – 3000  C1, B?\n"


def test_a_suspended_member_comes_back_as_a_helper() -> None:
    (line,) = drawn("0000 – 3000  A1, B1")
    gone = suspended(line, "B")
    assert printed([gone]) == "\n0000 – 3000  A1, B?\n"
    assert printed([helped(gone, "A", "B")]) == "\n0000 – 3000  A1, B1\n"


@pytest.mark.parametrize(
    "impossible",
    [
        lambda line: helped(line, "A", "A"),
        lambda line: helped(line, "Z", "B"),
        lambda line: flagged(line, "A", accumulatable=False),
        lambda line: released(line, "A"),
        lambda line: suspended(line, "A"),
        lambda line: split(line, 0, "A", "Z"),
        lambda line: split(line, 3001, "A", "Z"),
    ],
)
def test_a_change_that_would_leave_nobody_or_nothing_is_refused(impossible: object) -> None:
    (line,) = drawn("0000 – 3000  A1")
    assert callable(impossible)
    with pytest.raises(InvalidInput):
        impossible(line)
