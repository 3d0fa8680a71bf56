"""The index finds exactly the templates `matches` accepts, plain or not, in a dictionary or in cells, and drops those
that are dead."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as us
from utuple.model.columns import columns_of
from utuple.model.condition import Equal
from utuple.model.match import matches
from utuple.model.packed import packed
from utuple.model.utuple import Exact, Family, Kind, Template, UTuple
from utuple.server.matching import by_address
from utuple.server.matching import index as index_module
from utuple.server.matching.by_address import sole_address_of
from utuple.server.matching.index import TemplateIndex
from utuple.server.matching.kernels import Kernels
from utuple.store.contract import StoredTemplate

SECOND_US = 1_000_000
FAR_US = us.NOW_US * 2


@pytest.fixture(scope="module", params=["dictionary", "cells"])
def kernels(request: pytest.FixtureRequest) -> Iterator[Kernels]:
    loops = Kernels()
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "cells":
            patch.setattr(by_address, "MANY", 4)
            patch.setattr(by_address, "MOVED", 2)
            if not loops.load():
                pytest.skip("numba is not installed")
        yield loops


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[UTuple], list[UTuple]]:
    """EAs, and EFs around them, many of which ask for an address only."""
    events = draw(st.lists(us.event_actuals(), min_size=1, max_size=8))
    near = st.sampled_from(events).flatmap(us.formal_near)
    plain = st.builds(
        lambda id_, event: UTuple(
            id_, event.family, Template(Equal(event.metadata.address)), None, {}, 60.0, "r"
        ),
        us.ids,
        st.sampled_from(events),
    )
    anything = st.one_of(plain, near, us.event_formals())
    return events, draw(st.lists(anything, max_size=40, unique_by=lambda formal: formal.id))


def kept(utuple: UTuple, expires_us: int = FAR_US) -> StoredTemplate:
    return StoredTemplate(packed(utuple), 1, expires_us)


@given(crowds(), st.data())
def test_book_and_matches_agree_under_insertion_and_removal(
    kernels: Kernels, crowd: tuple[list[UTuple], list[UTuple]], data: st.DataObject
) -> None:
    events, formals = crowd
    cut = data.draw(st.integers(0, len(formals)))
    index = TemplateIndex((kept(formal) for formal in formals[:cut]), kernels)
    index.add_all([kept(formal) for formal in formals[cut:]])
    gone = {one.id for one in formals if data.draw(st.integers(0, 3)) == 0}
    for id_ in sorted(gone):
        index.remove(id_)
    living = [formal for formal in formals if formal.id not in gone]
    found = index.match(Kind.EF, columns_of(events), us.NOW_US)
    assert sorted(found.pairs()) == sorted(
        (row, formal.id)
        for row, event in enumerate(events)
        for formal in living
        if matches(event, formal)
    )
    assert (
        index.count(Kind.EF)
        == len(index.templates)
        == sum(index.count_by_family.values())
        == sum(index.efs_by_family.values())
        == len(living)
    )


@given(st.one_of(us.event_formals(), us.command_actuals()))
def test_the_sole_address_of_a_template_is_all_it_asks_for(utuple: UTuple) -> None:
    template = utuple.metadata
    assert isinstance(template, Template)
    address = template.address
    wanted = None
    if isinstance(address, Equal) and template == Template(address) and not utuple.where:
        wanted = address.value
    assert sole_address_of(packed(utuple)) == wanted


def plain(number: int) -> UTuple:
    template = Template(Equal("a"))
    return UTuple(bytes([number]) * 16, Family("truck", "load"), template, None, {}, 60.0, "r")


EVENT = columns_of([UTuple(b"e" * 16, Family("truck", "load"), Exact("a", 1), {}, None, 60.0)])


def test_the_expired_match_nothing_and_are_dropped_unless_they_are_renewed() -> None:
    index = TemplateIndex(
        [kept(plain(1), 5 * SECOND_US), kept(plain(2), 5 * SECOND_US + 7), kept(plain(3))]
    )
    assert len(index.match(Kind.EF, EVENT, 5 * SECOND_US)) == 2
    assert index.drop_expired(5 * SECOND_US) == [plain(1).id]
    index.renew(plain(2).id, 9 * SECOND_US)
    assert index.drop_expired(6 * SECOND_US) == []
    assert index.drop_expired(9 * SECOND_US) == [plain(2).id]
    assert set(index.templates) == {plain(3).id} and index.count(Kind.EF) == 1


def test_whose_reader_is_here_never_expires_and_who_was_over_by_then_is_told() -> None:
    index = TemplateIndex([kept(plain(1), 5 * SECOND_US), kept(plain(2), 5 * SECOND_US + 7)])
    assert len(index.match(Kind.EF, EVENT, 5 * SECOND_US)) == 1
    assert not index.pin(plain(1).id)
    assert index.pin(plain(2).id)
    assert len(index.match(Kind.EF, EVENT, 99 * SECOND_US)) == 2
    assert index.drop_expired(99 * SECOND_US) == []


def test_of_very_many_dead_some_are_dropped_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "MOST_DROPPED", 3)
    index = TemplateIndex(kept(plain(number), number * SECOND_US) for number in range(1, 9))
    dropped = [len(index.drop_expired(100 * SECOND_US)) for _ in range(4)]
    assert dropped == [3, 3, 2, 0] and not index.templates


def test_what_comes_again_is_only_renewed() -> None:
    index = TemplateIndex([kept(plain(1), 5)])
    index.add_all([kept(plain(1), 50)])
    assert index.templates[plain(1).id].expires_us == 50
    assert list(index.match(Kind.EF, EVENT, 10).pairs()) == [(0, plain(1).id)]


ADDRESSES = [
    "a",
    "b",
    "ab",
    "é" * 19,
    "é" * 20,
    "x" * 39,
    "x" * 40,
    "x" * 300,
    *map(str, range(40)),
]
FAMILIES = [Family("truck", "load"), Family("truck", "speed")]


@pytest.mark.parametrize("seed", range(4))
def test_thousands_for_an_address_come_go_and_expire(kernels: Kernels, seed: int) -> None:
    """Several for one address, addresses too long for a cell, and loops that are compiled late."""
    dice = Random(seed)
    late, loops = Kernels(), kernels
    index, living = TemplateIndex(kernels=late), dict[bytes, tuple[UTuple, int]]()
    for turn in range(120):
        if turn == 20:
            late.cells = loops.cells  # as when a server has started
        new = [formal_at_random(dice) for _ in range(dice.choice((1, 1, 5, 60)))]
        expiries = [turn + dice.randrange(200) for _ in new]
        index.add_all([kept(one, at) for one, at in zip(new, expiries, strict=True)])
        living |= {one.id: (one, at) for one, at in zip(new, expiries, strict=True)}
        for id_ in dice.sample(sorted(living), min(len(living), dice.choice((0, 3, 60)))):
            index.remove(id_)
            del living[id_]
        events = [event_at_random(dice) for _ in range(dice.choice((1, 30)))]
        found = index.match(Kind.EF, columns_of(events), turn)
        assert len(set(found.ids)) == len(found.ids)
        assert all(list(rows) == sorted(set(rows)) and rows for _, rows in found)
        assert sorted(found.pairs()) == sorted(
            (row, id_)
            for row, event in enumerate(events)
            for id_, (formal, at) in living.items()
            if at > turn and matches(event, formal)
        )
        assert index.count(Kind.EF) == len(index.templates) == len(living)
    for id_ in list(living):
        index.remove(id_)
    assert not index.count(Kind.EF) and not index.match(Kind.EF, EVENT, 0)


def formal_at_random(dice: Random) -> UTuple:
    template = Template(Equal(dice.choice(ADDRESSES)))
    return UTuple(dice.randbytes(16), dice.choice(FAMILIES), template, None, {}, 60.0, "r")


def event_at_random(dice: Random) -> UTuple:
    address = dice.choice([*ADDRESSES, "nobody's"])
    return UTuple(dice.randbytes(16), dice.choice(FAMILIES), Exact(address, 1), {}, None, 60.0)
