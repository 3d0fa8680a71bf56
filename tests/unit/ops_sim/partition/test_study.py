"""BlueDove's experiments (paper 002, section IV) in simulation."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from ops_sim.partition.study import Study, adaptive, at_random, fewest, study
from ops_sim.partition.workload import LENGTH, Workload
from utuple.cluster.layout import Axis, Layout
from utuple.errors import InvalidInput
from utuple.model.condition import Range
from utuple.model.utuple import Family, Template, UTuple


@pytest.fixture(scope="module")
def figures() -> Study:
    return study(Workload())


@pytest.mark.parametrize(
    ("name", "members", "expected"),
    [
        ("over one dimension", 5, 5.1),
        ("over one dimension", 20, 6.4),
        ("over replication", 5, 5.6),
        ("over replication", 20, 8.5),
        ("over replication, points", 5, 13.8),
        ("over replication, points", 20, 53.0),
        ("over random", 5, 3.0),
        ("over random", 20, 3.2),
        ("1 of 4 axes", 20, 1.0),
        ("2 of 4 axes", 20, 3.4),
        ("3 of 4 axes", 20, 4.6),
        ("4 of 4 axes", 20, 6.8),
    ],
)
def test_figures_6_7_and_11a_are_what_the_stated_workload_gives(
    figures: Study, name: str, members: int, expected: float
) -> None:
    assert figures.of(name, members) == approx(expected, rel=0.1)


def test_figure_8_the_adaptive_choice_loads_all_members_alike(figures: Study) -> None:
    assert figures.deviation <= 0.14


def test_efs_are_counted_as_a_layout_keeps_them() -> None:
    workload, members = Workload(efs=300, dimensions=2), 5
    cuts = tuple(float(edge) for edge in np.linspace(0, LENGTH, members + 1)[1:-1])
    owners = tuple((str(at),) for at in range(members))
    layout = Layout((Axis("data.x", cuts, owners),))
    dice = np.random.default_rng(workload.seed)
    kept = [0] * members
    for low in workload._cropped(dice, workload.hot_spots[0]).tolist():
        where = {"x": Range(low, low + workload.width)}
        ef = UTuple(bytes(16), Family("a", "b"), Template(), None, where, 60.0, "r")
        for name in layout.keepers(ef):
            kept[int(name)] += 1
    assert workload.counts(members)[0].tolist() == kept


def test_each_choice_on_two_members_by_hand() -> None:
    counts = np.array([[1, 10], [4, 4]])
    segments = np.array([[0, 1], [1, 0], [1, 0]])
    # adaptive: 1 at member 0; then 5 at member 0 by axis 1; then 9 there, since 10 at member 1 is done later
    assert adaptive(counts, segments).tolist() == [9.0, 0.0]
    assert fewest(counts, segments).tolist() == [9.0, 0.0]
    assert adaptive(counts[:1], segments).tolist() == [1.0, 20.0]
    assert at_random(counts, segments, 0).sum() in {9, 12, 15, 18, 21, 24}


@pytest.mark.parametrize(
    ("field", "value"), [("efs", 0), ("dimensions", 0), ("width", 0), ("deviation", float("inf"))]
)
def test_a_workload_that_makes_no_sense_is_refused(field: str, value: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        Workload(**{field: value})  # type: ignore[arg-type]
    assert refused.value.field == field
