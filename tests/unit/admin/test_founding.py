"""A cluster is founded once: whoever runs it, however often, cut short anywhere, two at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.admin.founding import (
    Difference,
    Founded,
    Give,
    NotFounded,
    Seen,
    Wait,
    difference,
    in_order,
    next_step,
)
from utuple.cluster.line import Line, ServerInfo, first_table
from utuple.cluster.table import Table
from utuple.errors import InvalidInput

NAMES = ["server-1", "server-2", "server-10"]


class Servers:
    """As servers do: each takes its line of the first table it is given, and keeps what it has."""

    def __init__(self, names: list[str]) -> None:
        self.lines: dict[str, tuple[Line, ...]] = dict.fromkeys(names, ())

    def seen(self) -> dict[str, Seen]:
        return {name: Seen(ServerInfo(name, "h:1"), lines) for name, lines in self.lines.items()}

    def adopt(self, name: str, table: list[Line]) -> None:
        if not self.lines[name]:
            self.lines[name] = tuple(line for line in table if line.member(name) is not None)

    @property
    def is_whole(self) -> bool:
        table = Table([line for lines in self.lines.values() for line in lines])
        count = sum(map(len, self.lines.values()))
        return table.is_whole and len(table) == count  # no two lines of one key


def run(servers: Servers, names: list[str]) -> Founded | Wait:
    names = in_order(names)
    while isinstance(step := next_step(names, servers.seen()), Give):
        for name in step.names:
            servers.adopt(name, first_table(names))
    return step


def test_every_server_gets_an_even_part_in_the_order_of_their_numbers() -> None:
    servers = Servers(NAMES)
    assert run(servers, ["server-10", "server-1", "server-2"]) == Founded()
    assert [servers.lines[name] for name in NAMES] == [(line,) for line in first_table(NAMES)]


def test_nothing_is_given_before_all_answer_and_the_missing_are_named() -> None:
    servers = Servers(["server-2"])
    assert run(servers, NAMES) == Wait(("server-1", "server-10"))
    assert servers.lines == {"server-2": ()}


def test_a_server_that_answers_and_is_not_named_is_told() -> None:
    with pytest.raises(NotFounded, match="server-10 answer too"):
        run(Servers(NAMES), NAMES[:2])


def test_a_cluster_that_has_a_table_keeps_it() -> None:
    servers = Servers(NAMES)
    run(servers, NAMES)
    before = dict(servers.lines)
    servers.lines["server-3"] = ()  # one that came later
    for names in (NAMES, [*NAMES, "server-3"], ["server-3"], ["server-1"]):
        assert run(servers, names) == Founded()
        assert servers.lines == {**before, "server-3": ()}


def test_one_that_was_cut_short_is_finished_by_the_next() -> None:
    for given_to in range(len(NAMES)):
        servers = Servers(NAMES)
        for name in NAMES[:given_to]:
            servers.adopt(name, first_table(NAMES))
        assert run(servers, NAMES) == Founded()
        assert servers.is_whole


@given(st.data())
def test_however_two_interleave_the_table_is_whole_and_of_one_of_them(data: st.DataObject) -> None:
    """Of any sets with the same first server; they see the servers at different moments, and give late."""
    sets = [in_order(data.draw(st.sampled_from([NAMES, NAMES[:2], NAMES[:1]]))) for _ in range(2)]
    servers = Servers(NAMES)
    hidden = {who: [name for name in NAMES if name not in sets[who]] for who in (0, 1)}
    owed: dict[int, list[str]] = {0: [], 1: []}
    ended: set[int] = set()
    while len(ended) < 2:
        who = data.draw(st.sampled_from([who for who in (0, 1) if who not in ended]))
        if owed[who]:
            servers.adopt(owed[who].pop(), first_table(sets[who]))
            continue
        seen = {n: s for n, s in servers.seen().items() if s.lines or n not in hidden[who]}
        step = next_step(sets[who], seen)
        if isinstance(step, Give):
            owed[who] = list(step.names)
        else:
            ended.add(who)
    assert servers.is_whole


@pytest.mark.parametrize("names", [[], ["server-1", "server-1"]])
def test_servers_are_named_once_each(names: list[str]) -> None:
    with pytest.raises(InvalidInput, match="every server"):
        in_order(names)


def test_names_that_are_not_those_of_the_table_are_told() -> None:
    table = first_table(NAMES)
    assert difference(["server-10", "server-1", "server-2"], table) == Difference()
    assert Difference().sentences == []
    differs = difference(["server-1", "server-9"], table)
    assert differs == Difference(("server-9",), ("server-2", "server-10"))
    assert [said.split(".")[0] for said in differs.sentences] == [
        "Not in the table: server-9",
        "In the table and not named: server-2, server-10",
    ]
