"""Whose search is next: fair turns (promise: one reader never slows another)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from utuple.store.turns import CONNECTIONS, SHORT_S, Lane, Turns, limit_s

LONG, MEDIUM, SHORT, CHORE = Lane.LONG, Lane.MEDIUM, Lane.SHORT, Lane.CHORE


def all_begun(turns: Turns[str]) -> dict[str, Lane]:
    found = {}
    while (one := turns.begin()) is not None:
        found[one[1]] = one[0]
    return found


def test_however_many_long_searches_there_are_a_newcomer_begins_at_once() -> None:
    turns: Turns[str] = Turns()
    for number in range(24):
        turns.ask(LONG, "busy", f"scan {number}")
    assert all_begun(turns) == {"scan 0": LONG, "scan 1": LONG}
    turns.ask(SHORT, "idle", "newcomer")
    assert all_begun(turns) == {"newcomer": SHORT}


def test_a_family_with_many_searches_lets_others_go_between() -> None:
    turns: Turns[str] = Turns([SHORT])
    for number in range(24):
        turns.ask(SHORT, "busy", f"scan {number}")
    assert turns.begin() == (SHORT, "scan 0")
    turns.ask(SHORT, "idle", "newcomer")
    order = []
    for _ in range(3):
        turns.end(SHORT)
        _, one = turns.begin() or (SHORT, "nobody")
        order.append(one)
    assert order == ["scan 1", "newcomer", "scan 2"]


def test_short_searches_do_not_starve_long_ones() -> None:
    turns: Turns[str] = Turns([LONG])
    for number in range(24):
        turns.ask(SHORT, number, f"short {number}")
    turns.ask(LONG, "busy", "scan")
    assert turns.begin() == (LONG, "scan")


def test_an_idle_connection_for_long_searches_helps_with_short_ones() -> None:
    turns: Turns[str] = Turns()
    for number in range(9):
        turns.ask(SHORT, number, f"short {number}")
    assert sorted(all_begun(turns).values()) == [SHORT, MEDIUM, LONG, LONG]


def test_chores_and_searches_do_not_wait_for_each_other() -> None:
    turns: Turns[str] = Turns()
    for lane in (SHORT, MEDIUM, LONG, CHORE):
        for number in range(9):
            turns.ask(lane, number, f"{lane.name} {number}")
    begun = all_begun(turns)
    assert begun.pop("CHORE 0") is CHORE
    assert sorted(begun.values()) == [SHORT, MEDIUM, LONG, LONG]
    assert all(name.startswith(own.name) for name, own in begun.items())


def test_who_has_gone_is_not_waited_for() -> None:
    turns: Turns[str] = Turns([SHORT])
    turns.ask(SHORT, "a", "gone")
    turns.ask(SHORT, "a", "there")
    turns.withdraw(SHORT, "a", "gone")
    turns.withdraw(SHORT, "a", "never was")
    assert turns.begin() == (SHORT, "there")


@given(st.lists(st.tuples(st.sampled_from(Lane), st.integers(0, 3), st.booleans()), max_size=60))
def test_everyone_has_a_turn_and_never_more_than_there_are_connections(
    steps: list[tuple[Lane, int, bool]],
) -> None:
    turns: Turns[int] = Turns()
    running: list[Lane] = []
    asked, had = set(), set()

    def begin() -> None:
        while (one := turns.begin()) is not None:
            running.append(one[0])
            had.add(one[1])
            assert len(running) <= len(CONNECTIONS)

    for number, (lane, who, ends) in enumerate(steps):
        turns.ask(lane, who, number)
        asked.add(number)
        begin()
        if ends and running:
            turns.end(running.pop(0))
            begin()
    while running:
        turns.end(running.pop())
        begin()
    assert had == asked


def test_what_is_broken_off_again_and_again_loses_a_ninth_of_its_time_at_most() -> None:
    for times in range(1, 6):
        in_vain_s = sum(limit_s(number) for number in range(times))
        assert in_vain_s <= limit_s(times) / 9
    assert limit_s(0) == SHORT_S
