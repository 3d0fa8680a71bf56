"""The parts of a page: a table that is patched is the table."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from utuple.admin.programs import FamilyLoad, Flag, Load, Server
from utuple.doors.http.operators.parts import changed_lines, families_part, sample_of, server_part

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
    slow, fast = FamilyLoad("a", "t", 1.0, 2), FamilyLoad("b", "t", 3.0, 1)
    servers = [Server("s1", families=(slow, fast)), Server("s2", families=(fast,))]
    rows = families_part(servers)
    assert [(row["subject"], row["arrival_per_s"], row["servers"]) for row in rows] == [
        ("b", 6.0, ["s1", "s2"]),
        ("a", 1.0, ["s1"]),
    ]


def test_a_server_counts_its_sections_and_one_that_does_not_answer_has_no_sample() -> None:
    flags = (Flag("0", "1", 1, True, False, "s"), Flag("1", "2", 1, False, False, "x"))
    server = Server(
        "s", state="serving", flags=flags, load=Load(0.5), capacity_bytes=10, size_bytes=5
    )
    part = server_part(server)
    assert (part["sections"], part["on"], part["home"]) == (2, 1, 1)
    assert sample_of([server, Server("gone")]) == {"s": [0.5, 0.5, 0.0, 0.0]}
