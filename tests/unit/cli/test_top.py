"""`utuple top` fits a terminal, however large the cluster is."""

from __future__ import annotations

import io

from rich.console import Console

from utuple.admin.programs import Load, Server
from utuple.admin.snapshot import Snapshot
from utuple.cli.looking.top import page
from utuple.cluster.line import Line, Member
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section


def printed(snapshot: Snapshot) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=100).print(page(snapshot))
    return out.getvalue().splitlines()


def cluster(servers: int, sections: int) -> Snapshot:
    width = HASH_SPACE // sections
    lines = [
        Line(
            Section(n * width, (n + 1) * width if n + 1 < sections else HASH_SPACE),
            1,
            (Member(f"server-{n % servers}"),),
        )
        for n in range(sections)
    ]
    some = [
        Server(f"server-{n}", state="serving" if n else "unreachable", load=Load(n / servers))
        for n in range(servers)
    ]
    return Snapshot(True, lines, some)


def test_ten_thousand_sections_are_as_wide_as_three_and_of_a_hundred_servers_those_in_need_are_shown() -> (
    None
):
    few, many = printed(cluster(3, 3)), printed(cluster(100, 10_000))
    bar = next(line for line in few if line.startswith("space"))
    assert next(line for line in many if line.startswith("space")) == bar
    assert len(bar.split()[1]) == 64
    named = [word for line in many for word in line.split() if word.startswith("server-")]
    assert named == ["server-0", *(f"server-{n}" for n in range(77, 100))]
    assert "76 more: utuple server list" in [line.strip() for line in many]
    assert not any("more:" in line for line in few)


def test_a_part_of_the_space_that_nobody_has_is_left_out() -> None:
    half = Snapshot(False, [Line(Section(0, HASH_SPACE // 2), 1, (Member("server-0"),))])
    bar = next(line for line in printed(half) if line.startswith("space"))
    assert len(bar.split()[1]) == 32
    assert not next(line for line in printed(Snapshot(False)) if line.startswith("space")).split()[
        1:
    ]
