"""The template index gives exactly the pairs `matches` accepts, whatever was added, removed, renewed or expired,
with NumPy's kernels and with the compiled ones."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as us
from utuple.model.area import Box
from utuple.model.columns import columns_of
from utuple.model.condition import DataCondition, Equal, Range
from utuple.model.match import matches
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.server.matching.bitmaps import PairBuffer, Segment
from utuple.server.matching.box_index import BoxIndex
from utuple.server.matching.kernels import WORD, Kernels

FAMILY = Family("truck", "load")
OTHER = Family("truck", "speed")
FAR_US = us.NOW_US * 2
SEGMENT_SLOTS = 128
"""Tiny: two segments or three, so that every way into and out of one is taken."""

NUMPY, COMPILED = Kernels(), Kernels()


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    if request.param == "numpy":
        return NUMPY
    if not COMPILED.is_compiled and not COMPILED.load():
        pytest.skip("numba is not installed")
    return COMPILED


class Oracle:
    """The index beside what it must do: every template asked by `matches`."""

    def __init__(self, kernels: Kernels) -> None:
        self.index = BoxIndex(kernels, SEGMENT_SLOTS)
        self.living: dict[bytes, tuple[UTuple, int]] = {}

    def add(self, *templates: tuple[UTuple, int]) -> None:
        if len(templates) == 1:
            self.index.add(*templates[0])
        else:
            self.index.add_many(templates)
        self.living |= {utuple.id: (utuple, expires_us) for utuple, expires_us in templates}

    def remove(self, id_: bytes) -> None:
        self.index.remove(id_)
        del self.living[id_]

    def renew(self, id_: bytes, expires_us: int) -> None:
        self.index.renew(id_, expires_us)
        self.living[id_] = (self.living[id_][0], expires_us)

    def check(self, events: list[UTuple], now_us: int) -> int:
        found = self.index.match(columns_of(events), now_us)
        pairs = list(found.pairs())
        assert len(pairs) == len(set(pairs)) == len(found)
        assert len(set(found.ids)) == len(found.ids)
        assert all(list(rows) == sorted(rows) and rows for _, rows in found)
        assert set(pairs) == {
            (row, id_)
            for row, event in enumerate(events)
            for id_, (formal, expires_us) in self.living.items()
            if expires_us > now_us and matches(event, formal)
        }
        assert len(self.index) == len(self.living)
        assert all(id_ in self.index for id_ in self.living)
        return len(pairs)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[UTuple], list[UTuple]]:
    """EAs of two families, and EFs around them."""
    some = st.sampled_from([FAMILY, FAMILY, FAMILY, OTHER])
    events = draw(st.lists(us.event_actuals(some), min_size=1, max_size=12))
    near = st.sampled_from(events).flatmap(us.formal_near)
    formals = draw(
        st.lists(st.one_of(near, us.event_formals(some)), max_size=40, unique_by=lambda f: f.id)
    )
    return events, formals


@given(crowds(), st.integers(0, 2**32), st.sampled_from([0, 60, 100, 250]))
def test_index_and_matches_agree(
    kernels: Kernels, crowd: tuple[list[UTuple], list[UTuple]], seed: int, others: int
) -> None:
    events, formals = crowd
    dice = Random(seed)
    both = Oracle(kernels)
    both.add(*((formal_at_random(number, dice), FAR_US) for number in range(others)))
    for formal in formals:
        both.add((formal, us.NOW_US + dice.choice((0, 1, 2))))
        if dice.random() < 0.3:
            both.remove(dice.choice(sorted(both.living)))
        if both.living and dice.random() < 0.3:
            both.renew(dice.choice(sorted(both.living)), us.NOW_US + dice.choice((0, 2)))
        if dice.random() < 0.1:
            both.check(events, us.NOW_US + dice.choice((0, 1)))
    both.check(events, us.NOW_US)
    both.check(events, us.NOW_US + 1)


def formal_at_random(number: int, dice: Random, family: Family = FAMILY) -> UTuple:
    south, west = dice.uniform(-80, 60), dice.uniform(-170, 130)
    area = Box(south, west, south + dice.uniform(1, 20), west + dice.uniform(1, 40))
    since_us = dice.randrange(1_000)
    metadata = dice.choice(
        (
            Template(),
            Template(area=area),
            Template(since_us=since_us, until_us=since_us + 500),
            Template(address=Equal(f"t{dice.randrange(9)}")),
        )
    )
    heavy: dict[str, DataCondition] = {"kg": Range(dice.uniform(0, 100), None)}
    named: dict[str, DataCondition] = {"name": Equal(f"n{dice.randrange(20)}")}
    where = dice.choice(({}, heavy, named, heavy | named))
    return UTuple(number.to_bytes(16, "big"), family, metadata, None, where, 600, "r")


def event_at_random(number: int, dice: Random) -> UTuple:
    position = dice.choice((None, (dice.uniform(-80, 80), dice.uniform(-170, 170))))
    data = dice.choice(({}, {"kg": dice.uniform(0, 100), "name": f"n{dice.randrange(20)}"}))
    exact = Exact(f"t{dice.randrange(9)}", dice.randrange(1_500), position)
    family = dice.choice((FAMILY, FAMILY, OTHER))
    return UTuple(number.to_bytes(16, "big"), family, exact, data, None, 600)


@pytest.mark.parametrize("seed", range(3))
def test_thousands_come_and_go(kernels: Kernels, seed: int) -> None:
    """Bursts large and small fill segments, take slots again that others left, and empty segments."""
    dice = Random(seed)
    both = Oracle(kernels)
    met = 0
    for burst, kept in (
        (1, 1),
        (3, 2),
        (900, 700),
        (40, 20),
        (600, 1_300),
        (0, 60),
        (700, 90),
        (130, 0),
    ):
        new = [formal_at_random(dice.getrandbits(100), dice) for _ in range(burst)]
        if dice.random() < 0.5:
            both.add(*((one, FAR_US) for one in new))
        else:
            for one in new:
                both.add((one, FAR_US))
        while len(both.living) > kept:
            both.remove(dice.choice(list(both.living)))
        met += both.check([event_at_random(number, dice) for number in range(6)], 0)
    assert met > 100
    assert both.index.size_bytes == 0, "nothing is left when all are gone"


def test_segments_that_are_nearly_empty_go() -> None:
    dice = Random(0)
    both = Oracle(NUMPY)
    both.add(*((formal_at_random(number, dice), FAR_US) for number in range(4_000)))
    both.check([event_at_random(0, dice)], 0)
    full_bytes = both.index.size_bytes
    for id_ in dice.sample(list(both.living), 3_700):
        both.remove(id_)
    both.check([event_at_random(number, dice) for number in range(6)], 0)
    assert both.index.size_bytes < full_bytes / 4


def test_expired_templates_match_nothing_until_renewed() -> None:
    event = UTuple(b"e" * 16, FAMILY, Exact("a", 1), {}, None, 60)
    formal = UTuple(b"f" * 16, FAMILY, Template(), None, {}, 60, "r")
    index = BoxIndex()
    index.add(formal, expires_us=100)
    assert index.match(columns_of([event]), now_us=99)
    assert not index.match(columns_of([event]), now_us=100)
    index.renew(formal.id, 200)
    assert index.match(columns_of([event]), now_us=100)


def test_data_is_not_decoded_for_templates_that_ask_nothing_of_it() -> None:
    events = columns_of([event_at_random(number, Random(number)) for number in range(20)])
    unreadable = type(events)(
        *(events.families, events.family, events.ids, events.times_us, events.lats, events.lons),
        *(events.lifetimes_us, events.addresses, [b"not JSON"] * 20),
    )
    index = BoxIndex()
    index.add(UTuple(b"f" * 16, FAMILY, Template(until_us=2_000), None, {}, 60, "r"), FAR_US)
    asking = UTuple(b"g" * 16, FAMILY, Template(), None, {"kg": Range(0, None)}, 60, "r")
    index.add(asking, FAR_US)
    index.remove(asking.id)
    assert len(index.match(unreadable, 0)) == sum(f == 0 for f in events.family)


def test_compiled_kernels_are_wanted_once_and_only_when_templates_are_many() -> None:
    wanted: list[int] = []
    kernels = Kernels()
    index = BoxIndex(kernels)
    kernels.on_wanted = lambda: wanted.append(len(index))
    event = columns_of([UTuple(b"e" * 16, FAMILY, Exact("a", 1), {}, None, 60)])
    for number in range(400):
        id_ = number.to_bytes(16, "big")
        index.add(UTuple(id_, FAMILY, Template(since_us=number), None, {}, 60, "r"), FAR_US)
        index.match(event, 0)
    assert wanted == [65]


def test_boxes_without_bitmaps_are_all_compared_also_after_some_came_and_went(
    kernels: Kernels,
) -> None:
    dice = np.random.default_rng(5)
    boxes = np.sort(dice.uniform(0, 9, (WORD, 2, 2)), axis=2).reshape(WORD, 4)
    values = dice.uniform(0, 9, (300, 3))  # of the last dimension nothing is asked here
    segment = Segment(kernels, WORD, WORD)
    slot_of: dict[int, int] = {}

    def found() -> list[tuple[int, int]]:
        numbers, counts, rows = segment.match(values, PairBuffer())
        return list(zip(np.repeat(numbers, counts).tolist(), rows.tolist(), strict=True))

    def expected() -> list[tuple[int, int]]:
        return [
            (number, at)
            for number in sorted(slot_of, key=slot_of.__getitem__)
            for at, point in enumerate(values)
            if all(boxes[number, 2 * d] <= point[d] < boxes[number, 2 * d + 1] for d in (0, 1))
        ]

    for some in ([0, 1, 2], [*range(3, WORD)]):
        slot_of |= zip(some, segment.put(some, boxes[some]), strict=True)
        assert found() == expected() != []
    for number in (7, 8, 40):
        segment.remove(slot_of.pop(number))
        assert found() == expected()
