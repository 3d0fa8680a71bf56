"""The parts of a page: a table that is patched is the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from utuple.admin.choice import layout_of
from utuple.admin.programs import ByCause, FamilyLoad, Flag, Load, Server
from utuple.cluster.line import Line, Member
from utuple.doors.http.operators.parts import (
    changed_lines,
    families_part,
    line_part,
    sample_of,
    server_part,
)
from utuple.model.section import Section

LINES = st.dictionaries(
    st.integers(0, 9).map(lambda n: f"{n:016x}"), st.integers(1, 3), max_size=6
).map(lambda found: [[start, "f", epoch, []] for start, epoch in sorted(found.items())])


@given(LINES, LINES)
def test_the_old_table_and_what_changed_give_the_new_one(old: Any, new: Any) -> None:
    change = changed_lines(old, new)
    if change is None:
        assert old == new
        return
    kept = {line[0]: line for line in old if line[0] not in change["gone"]}
    kept |= {line[0]: line for line in change["put"]}
    assert sorted(kept.values()) == new


def test_families_of_several_servers_are_one_row_the_busiest_first() -> None:
    slow, fast = FamilyLoad("a", "t", 1.0, 7, 5, 10.0), FamilyLoad("b", "t", 3.0, 1, 1, 100.0)
    more = FamilyLoad("b", "t", 1.0, 3, 0, 20.0)
    servers = [Server("s1", families=(slow, fast)), Server("s2", families=(more,))]
    rows = families_part(servers)
    named = ("subject", "arrival_per_s", "bytes_per_s", "servers")
    assert [[row[name] for name in named] for row in rows] == [
        ["b", 4.0, 320.0, ["s1", "s2"]],
        ["a", 1.0, 10.0, ["s1"]],
    ]
    assert [(row["event_templates"], row["command_templates"]) for row in rows] == [(1, 3), (5, 2)]


def test_a_partitioned_line_says_by_what_and_where_it_is_cut() -> None:
    line = Line(Section(0, 1 << 63), 3, (Member("s1"), Member("s2")))
    cut = replace(line, layout=layout_of(line, "data.kg:10:20"))
    assert line_part(line)[4] == []
    assert line_part(cut)[4] == [["data.kg", [10, 20]]]


def test_a_server_counts_its_sections_and_one_that_does_not_answer_has_no_sample() -> None:
    flags = (Flag("0", "1", 1, True, False, "s"), Flag("1", "2", 1, False, False, "x"))
    server = Server(
        "s",
        state="serving",
        flags=flags,
        load=Load(0.5, 3.0, by_cause=ByCause(0.25, 0.125, 0.125), commit_s=0.002),
        capacity_bytes=10,
        size_bytes=5,
    )
    part = server_part(server)
    assert (part["sections"], part["on"], part["home"]) == (2, 1, 1)
    assert sample_of([server, Server("gone")]) == {"s": [0.5, 0.5, 3.0, 0.002, 0.25, 0.125, 0.125]}
