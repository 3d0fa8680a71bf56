"""The yardsticks of `bench match` find what the model finds, or they would be no yardsticks."""

from __future__ import annotations

from itertools import product

from benchmarks.match.brute import Brute
from benchmarks.match.workload import FAMILY, Kind, batch, formals
from utuple.model.columns import columns_of
from utuple.model.condition import Range
from utuple.model.match import matches
from utuple.model.utuple import Exact, UTuple

EFS, EAS = 300, 40


def test_brute_force_finds_the_pairs_that_match() -> None:
    templates = list(formals(Kind.NUMBERS, EFS, seed=3))
    columns = batch(Kind.NUMBERS, EAS, devices=EFS, seed=4)
    events = [columns.utuple_at(row) for row in range(len(columns))]
    pairs = sum(matches(event, template) for event, template in product(events, templates))
    brute = Brute(templates, EAS)
    assert pairs > 10
    assert brute.in_turn(columns) == pairs
    assert brute.at_once(columns) == pairs


def test_brute_force_takes_the_low_end_and_not_the_high_one() -> None:
    (template,) = formals(Kind.NUMBERS, 1, seed=3)
    assert template.where is not None
    ranges = {name: asked for name, asked in template.where.items() if isinstance(asked, Range)}
    lows = {name: asked.low for name, asked in ranges.items()}
    ends = [lows, *({**lows, name: asked.high} for name, asked in ranges.items())]
    exact = Exact("truck-1", 0)
    columns = columns_of(
        UTuple(row.to_bytes(16, "big"), FAMILY, exact, data, None, 60.0)
        for row, data in enumerate(ends)
    )
    brute = Brute([template], rows=16)
    assert brute.in_turn(columns) == brute.at_once(columns) == 1
