"""The bitmaps in bulk: many templates at once, few, and in turns with removals, agree with `matches`."""

from __future__ import annotations

from random import Random

import pytest

from utuple.model.area import Box
from utuple.model.columns import columns_of
from utuple.model.condition import DataCondition, Equal, Range
from utuple.model.match import matches
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.server.index import TemplateIndex

FAMILY = Family("truck", "load")
FAR_US = 1 << 60


def formal(number: int, dice: Random) -> UTuple:
    south, west = dice.uniform(-80, 60), dice.uniform(-170, 130)
    area = Box(south, west, south + dice.uniform(1, 20), west + dice.uniform(1, 40))
    since_us = dice.randrange(1_000)
    metadata = dice.choice(
        (Template(), Template(area=area), Template(since_us=since_us, until_us=since_us + 500))
    )
    heavy: dict[str, DataCondition] = {"kg": Range(dice.uniform(0, 100), None)}
    named: dict[str, DataCondition] = {"name": Equal(f"n{dice.randrange(20)}")}
    where = dice.choice(({}, heavy, named, heavy | named))
    return UTuple(number.to_bytes(16, "big"), FAMILY, metadata, None, where, 600, "r")


def event(number: int, dice: Random) -> UTuple:
    position = dice.choice((None, (dice.uniform(-80, 80), dice.uniform(-170, 170))))
    data = dice.choice(({}, {"kg": dice.uniform(0, 100), "name": f"n{dice.randrange(20)}"}))
    exact = Exact("t1", dice.randrange(1_500), position)
    return UTuple(number.to_bytes(16, "big"), FAMILY, exact, data, None, 600)


@pytest.mark.parametrize("seed", range(5))
def test_templates_added_in_bulk_match_as_they_do_one_by_one(seed: int) -> None:
    dice = Random(seed)
    index = TemplateIndex()
    living: dict[bytes, UTuple] = {}
    for burst in (1, 3, 700, 2, 40, 600, 1, 130):
        for _ in range(burst):
            new = formal(dice.getrandbits(100), dice)
            index.add(new, FAR_US)
            living[new.id] = new
        for gone in dice.sample(sorted(living), k=min(len(living), burst // 3)):
            index.remove(gone)
            del living[gone]
        events = [event(number, dice) for number in range(6)]
        found = set(index.match(columns_of(events), 0).pairs())
        assert found == {
            (row, id_)
            for row, one in enumerate(events)
            for id_, kept in living.items()
            if matches(one, kept)
        }
    assert len(index) == len(living)
