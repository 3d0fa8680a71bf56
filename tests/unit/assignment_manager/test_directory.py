"""What one manager holds, answers and passes on."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from assignment_manager.digest import BUCKETS
from assignment_manager.directory import Directory, PassOn
from assignment_manager.peer import Peer, peer_of
from assignment_manager.ring import Ring
from tests.histories import History, histories
from utuple.cluster.line import Line, Member, ServerInfo, first_table
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section

FIVE = [f"manager-{number}" for number in range(1, 6)]
TABLE = first_table([f"server-{number}" for number in range(1, 21)])


def line(start: int, end: int, epoch: int, *members: str) -> Line:
    return Line(Section(start, end), epoch, tuple(map(Member, members or ("A",))))


def filled() -> Directory:
    """One of five managers, when all of them have what they should hold."""
    made = directory()
    for one in made.hear_lines(TABLE):
        made.passed_on(one)
    return made


def directory(own: str = FIVE[0], managers: list[str] = FIVE) -> Directory:
    made = Directory(own)
    made.settle(Ring(managers))
    return made


def held_by(made: Directory, name: str) -> list[Line]:
    return [line for line in TABLE if name in made.ring.holders(line.section.start)]


def batches(owed: list[PassOn]) -> dict[str, list[Line]]:
    return {one.to: list(one.lines) for one in owed}


def test_lines_announced_are_kept_by_their_holders_and_passed_on_to_the_others() -> None:
    made = directory()
    owed = made.hear_lines(TABLE)
    assert batches(owed) == {name: held_by(made, name) for name in FIVE[1:]}
    assert list(made.lines) == TABLE  # nobody else is known to have them yet
    for one in owed:
        made.passed_on(one)
    assert list(made.lines) == held_by(made, FIVE[0])
    made.hear_lines(TABLE)
    assert list(made.lines) == held_by(made, FIVE[0])


def test_what_was_passed_on_is_not_passed_on_again_until_it_is_news() -> None:
    made = filled()
    assert made.hear_lines(TABLE) == []
    newer = Line(TABLE[3].section, 2, TABLE[3].members)
    holders = set(made.ring.holders(newer.section.start)) - {FIVE[0]}
    assert batches(made.hear_lines([newer, *TABLE])) == {name: [newer] for name in holders}


def test_what_another_manager_passes_on_is_kept_and_goes_no_further() -> None:
    made = directory()
    assert made.hear_lines(TABLE, passed_on=True) == []
    assert list(made.lines) == TABLE


def test_passing_on_takes_the_members_addresses_along() -> None:
    made = directory()
    made.hear_servers([ServerInfo("server-1", "a:1"), ServerInfo("server-9", "a:9")])
    assert {one.servers for one in made.hear_lines(TABLE[:1])} == {(ServerInfo("server-1", "a:1"),)}


def test_lines_move_to_the_next_managers_when_one_dies() -> None:
    made = filled()
    held = list(made.lines)
    before, after = made.ring, Ring(FIVE[:-1])
    owed = batches(made.settle(after))
    for name in FIVE[1:-1]:
        gained = [
            line
            for line in held
            if name in after.holders(line.section.start)
            and name not in before.holders(line.section.start)
        ]
        assert owed.get(name, []) == gained
    assert sum(map(len, owed.values())) > 0


def test_a_manager_that_says_it_keeps_nothing_is_owed_all_it_should_hold() -> None:
    made = filled()
    both = [line for line in made.lines if line in held_by(made, FIVE[1])]
    assert batches(made.hear_kept(FIVE[1], [])) == {FIVE[1]: both}
    assert made.hear_kept(FIVE[1], map(peer_of, both)) == []


def test_a_manager_that_was_dead_is_taken_to_have_lost_everything() -> None:
    made = filled()
    made.settle(Ring(FIVE[:-1]))
    both = [line for line in held_by(directory(), FIVE[-1]) if line in made.lines.items]
    assert both
    assert batches(made.settle(Ring(FIVE)))[FIVE[-1]] == both


def test_a_line_is_dropped_only_when_all_its_holders_are_known_to_keep_it() -> None:
    alone = Directory(FIVE[0])
    alone.hear_lines(TABLE)
    alone.settle(Ring(FIVE))
    for name in FIVE[1:-1]:
        alone.hear_kept(name, map(peer_of, held_by(alone, name)))
    waits_for_the_last = [
        line for line in TABLE if {FIVE[0], FIVE[-1]} & set(alone.ring.holders(line.section.start))
    ]
    assert list(alone.lines) == waits_for_the_last
    alone.hear_kept(FIVE[-1], map(peer_of, held_by(alone, FIVE[-1])))
    assert list(alone.lines) == held_by(alone, FIVE[0])


def test_a_key_held_elsewhere_is_asked_of_its_holders_in_one_batch() -> None:
    made = filled()
    keys = [line.section.end - 1 for line in TABLE]
    found = made.lookup(keys)
    for position, (line, slot) in enumerate(zip(TABLE, found.line, strict=True)):
        holders = made.ring.holders(line.section.start)
        if slot:
            assert found.lines[slot - 1] == line and FIVE[0] in holders
        else:
            assert position in found.elsewhere[holders]
    assert sum(map(len, found.elsewhere.values())) == found.line.count(0) > 0


def test_a_key_nobody_announced_is_not_known_and_not_asked_for() -> None:
    made = directory()
    made.hear_lines([line(10, 20, 1)])
    found = made.lookup([0, 9, 20, HASH_SPACE - 1])
    assert (found.line, found.lines, found.elsewhere) == ([0, 0, 0, 0], [], {})


def test_a_line_older_than_what_was_heard_of_is_not_answered() -> None:
    made = directory(managers=FIVE[:3])
    made.hear_lines([line(0, 100, 1)])
    made.hear_peers([Peer(Section(0, 50), 2)])
    found = made.lookup([20, 70])
    assert found.line == [0, 1]
    others = tuple(name for name in made.ring.holders(0) if name != made.own)
    assert found.elsewhere == {others: [0]}
    made.hear_lines([line(0, 100, 1)])
    assert made.lookup([20, 70]).line == [0, 1]
    assert not made.accept(line(0, 100, 1))
    assert made.accept(line(0, 50, 2)) and made.accept(line(0, 50, 3))
    assert not made.accept(line(0, 50, 2))
    made.hear_lines([line(0, 50, 3, "B")])
    assert made.lookup([20]).lines == [line(0, 50, 3, "B")]


def test_the_newest_address_of_a_server_wins_whatever_is_heard_last() -> None:
    old, new = ServerInfo("s", "a:1", "server", 1), ServerInfo("s", "b:1", "sca", 2)
    for order in ([old, new], [new, old]):
        made = directory()
        made.hear_servers(order)
        assert made.servers == {"s": new}
        assert made.sca_servers == {"s": new}


def test_the_ring_of_peers_says_which_lines_are_missing_here() -> None:
    made = filled()
    assert set(made.missing()) == {one.section.start for one in TABLE} - {
        one.section.start for one in made.lines
    }
    shared = [one for one in made.lines if one in held_by(made, FIVE[1])]
    told = [peer for peer, kept in made.content(range(BUCKETS), FIVE[1]) if kept]
    assert told == list(map(peer_of, shared))
    assert sum(made.hosted().values()) == len(TABLE)


@given(histories, st.randoms(use_true_random=False), st.integers(1, 5))
def test_announcements_in_any_order_give_the_highest_epochs(
    history: History, dice: Random, managers: int
) -> None:
    """As lines where it is a holder, as peers everywhere."""
    made = directory(managers=FIVE[:managers])
    heard = history.ever + history.ever[::2]
    dice.shuffle(heard)
    for one in heard:
        made.hear_lines([one], passed_on=dice.random() < 0.5)
    assert list(made.peers) == list(map(peer_of, history.final))
    held = list(made.lines)
    for final in history.final:
        if made.own in made.ring.holders(final.section.start):
            assert final in held
    for kept in held:
        assert any(kept == final for final in history.final)


def of_others(made: Directory) -> Line:
    return next(line for line in TABLE if made.own not in made.ring.holders(line.section.start))


def test_what_is_confirmed_late_does_not_hide_what_is_newer() -> None:
    made = directory()
    old = of_others(made)
    newer = Line(old.section, old.epoch + 1, old.members)
    first, second = made.hear_lines([old]), made.hear_lines([newer])
    for one in [*second, *first]:
        made.passed_on(one)
    assert list(made.lines) == [] and not any(made.hear_kept(name, []) for name in FIVE)


def test_a_line_that_was_handed_over_by_mistake_goes_on_to_those_who_should_hold_it() -> None:
    made = directory()
    mislaid = of_others(made)
    assert made.hear_lines([mislaid], passed_on=True) == []
    for name in made.ring.holders(mislaid.section.start):
        (owed,) = made.hear_kept(name, [])
        assert batches([owed]) == {name: [mislaid]}
        made.passed_on(owed)
    assert list(made.lines) == []


def test_what_a_manager_confirmed_in_an_earlier_life_is_handed_to_it_again() -> None:
    made = directory()
    line = of_others(made)
    for one in made.hear_lines([line]):
        made.passed_on(one)
    assert made.hear_lines([line]) == []
    name = made.ring.holders(line.section.start)[0]
    made.has_started_again(name)
    assert batches(made.hear_lines([line])) == {name: [line]}
