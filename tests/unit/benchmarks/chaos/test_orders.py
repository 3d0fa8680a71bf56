"""Orders of a chaos run fit the table they were drawn from, but for those that must be refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.chaos.orders import (
    JOINERS_LEAST,
    MEMBERS_MOST,
    Ordered,
    Situation,
    fits,
    next_order,
    possible,
    wrong_orders,
)
from utuple.cluster.line import Line, Member, first_table
from utuple.cluster.move import MoveKind, line_of, target
from utuple.cluster.table import Table
from utuple.model.section import Section, tiles

SERVERS = tuple(f"server-{number}" for number in range(1, 6))
LINES_MOST = 12
seeds = st.integers(0, 1 << 32)


@st.composite
def lines(draw: st.DrawFn) -> Line:
    names = draw(st.lists(st.sampled_from(SERVERS), min_size=1, max_size=4, unique=True))
    states = [Member("x"), Member("x", accumulatable=False)]
    states.append(Member("x", accumulatable=False, suspended=True))
    members = [replace(draw(st.sampled_from(states)), name=name) for name in names]
    if not any(member.accumulatable for member in members):
        members[0] = Member(members[0].name)
    if members[0].suspended:  # a home never is
        members[0] = Member(members[0].name, accumulatable=False)
    start = draw(st.integers(0, 1000))
    section = Section(start, start + draw(st.integers(1, 1000)))
    return Line(section, draw(st.integers(1, 9)), tuple(members))


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    line = draw(lines())
    keys = draw(st.lists(st.integers(0, 2000), max_size=4))
    empty = {(member.name, line.section.start) for member in line.members if draw(st.booleans())}
    left = [(name, line.section) for name in SERVERS if draw(st.booleans())]
    busy = (line.section,) if draw(st.booleans()) else ()
    most = draw(st.integers(1, 3))
    return Situation((line,), SERVERS, most, busy, tuple(keys), frozenset(empty), tuple(left))


@given(situations(), seeds)
def test_an_order_fits_its_line_and_goes_to_its_home_or_is_one_that_cannot_be_made(
    now: Situation, seed: int
) -> None:
    ordered = next_order(Random(seed), now)
    (line,) = now.lines
    if ordered is None:
        return
    assert ordered.fits == (ordered.to == line.home and fits(ordered.move, [line]))


@given(situations())
def test_a_line_does_not_grow_beyond_its_limits_and_nobody_joins_what_he_was_drained_of(
    now: Situation,
) -> None:
    (line,) = now.lines
    left = {name for name, _ in now.left}
    for move in possible(line, now):
        after = target(move, line)
        assert len(after) <= now.lines_most
        for changed in after:
            came = {one.name for one in changed.members} - {one.name for one in line.members}
            assert not came or len(changed.members) <= MEMBERS_MOST
            assert not came & left
        if move.kind is MoveKind.DRAIN:
            assert len(set(SERVERS) - left) > JOINERS_LEAST


@given(lines())
def test_a_wrong_order_is_refused_by_its_line_or_is_not_for_whom_it_is_sent_to(line: Line) -> None:
    for ordered in wrong_orders(line, SERVERS):
        assert not ordered.fits
        assert ordered.to != line.home or not fits(ordered.move, [line])


@given(situations(), seeds)
def test_the_same_dice_give_the_same_order(now: Situation, seed: int) -> None:
    assert next_order(Random(seed), now) == next_order(Random(seed), now)


def test_where_a_move_is_under_way_little_is_ordered() -> None:
    (line,) = first_table(["server-1"])
    free = Situation((line,), SERVERS, 1)
    busy = replace(free, busy=(line.section,))
    dice = Random(1)
    assert sum(_fits(next_order(dice, free)) for _ in range(1000)) > 800
    assert sum(_fits(next_order(dice, busy)) for _ in range(1000)) < 100


def _fits(ordered: Ordered | None) -> bool:
    return ordered is not None and ordered.fits


def test_a_server_that_is_in_no_line_is_soon_in_one() -> None:
    line = Line(Section(0, 100), 1, tuple(Member(name) for name in SERVERS[:2]))
    dice, now = Random(1), Situation((line,), SERVERS, 2)
    orders = [ordered.move for _ in range(500) if (ordered := next_order(dice, now))]
    helpers = Counter(move.helper for move in orders if move.helper)
    assert all(helpers[name] > 50 for name in SERVERS[2:])


def test_a_split_is_at_a_stored_key_or_anywhere_inside() -> None:
    line, stored = Line(Section(100, 200), 1, (Member("server-1"),)), (100, 150, 300)
    dice, now = Random(1), Situation((line,), SERVERS, 2, keys=stored)
    keys = Counter(
        ordered.move.key
        for _ in range(1000)
        if (ordered := next_order(dice, now)) and ordered.fits and ordered.move.key
    )
    assert all(100 < key < 200 for key in keys)
    assert keys[150] > 50 and len(keys) > 20


def test_orders_carried_out_one_after_another_are_of_every_kind_and_keep_the_table_whole() -> None:
    """As if each were made at once: nothing is ever stuck, though drains are never undone."""
    made = Counter[MoveKind]()
    for seed in range(4):
        dice, table = Random(seed), Table(first_table(list(SERVERS[:4])))
        left: list[tuple[str, Section]] = []
        for number in range(300):
            most = 5 + number * (LINES_MOST - 5) // 300
            now = Situation(tuple(table), SERVERS, most, left=tuple(left))
            ordered = next_order(dice, now)
            assert ordered is not None
            if not ordered.fits:
                continue
            move = ordered.move
            line = line_of(move, table.overlapping(move.section))
            assert ordered.to == line.home
            made[move.kind] += 1
            if move.kind is MoveKind.DRAIN:
                left.append((move.member, move.section))
            for changed in target(move, line):
                table.hear(changed)
        assert tiles(line.section for line in table) and len(table) <= LINES_MOST
        assert max(len(line.members) for line in table) <= MEMBERS_MOST
    ordered_by_homes = {MoveKind.PRUNE}
    assert set(made) == set(MoveKind) - ordered_by_homes and min(made.values()) >= 2
