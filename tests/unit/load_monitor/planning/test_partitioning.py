"""Help or partition, by cost (paper 002, and issue 21's formulas)."""

from __future__ import annotations

import pytest
from pytest import approx

from load_monitor.planning.partitioning import (
    HELP_ABOVE,
    PARTITION_BELOW,
    Choice,
    Costs,
    Histogram,
    SectionLoad,
    best_layout,
    help_load,
    is_help_wanted,
    is_partition_wanted,
)
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout
from utuple.errors import InvalidInput

SCANNING = Costs(ea_s=1e-6, ef_looked_at_s=1e-7, match_s=1e-6, ef_registered_s=1e-4)
"""As BlueDove's matchers: each EF is looked at."""
FOUR = ("home", "b", "c", "d")
BUSY = SectionLoad(eas_per_s=500, efs_per_s=100, efs=40_000, matches_per_ea=2)


def even(dimension: str = "lat", buckets: int = 16, efs: int = 1600, wide: int = 1) -> Histogram:
    """EAs everywhere alike; EFs begin everywhere alike, and each overlaps `wide` buckets."""
    each = efs // buckets
    begins = (each,) * buckets
    ends = tuple(0 if at < wide - 1 else each for at in range(buckets - 1))
    ends = (*ends, efs - sum(ends))
    return Histogram(dimension, tuple(range(1, buckets)), (1.0,) * buckets, begins, ends)


def test_under_help_every_member_looks_at_every_ef() -> None:
    each_s = 1e-6 + 2 * 1e-6 + 40_000 * 1e-7
    assert help_load(BUSY, SCANNING, 4) == approx(500 / 4 * each_s + 100 * 1e-4)


def test_one_axis_of_narrow_efs_gives_each_member_a_quarter() -> None:
    found = best_layout(BUSY, SCANNING, [even()], FOUR)
    (axis,) = found.layout.axes
    assert axis.cuts == (4, 8, 12)
    assert axis.owners == (("home",), ("b",), ("c",), ("d",))
    each_s = 1e-6 + 2 * 1e-6 + 10_000 * 1e-7
    # the home registers every EF, the others a quarter of them; EAs cannot choose on one axis
    assert found.load == approx(500 / 4 * each_s + 100 * 1e-4, rel=0.01)
    assert found.most_kept == approx(0.25)
    assert is_partition_wanted(found)


def test_a_second_axis_is_added_while_it_leaves_the_busiest_less() -> None:
    crowded = Histogram("lon", (1, 2, 3), (1, 1, 1, 1), (1500, 50, 25, 25), (1500, 50, 25, 25))
    both = best_layout(BUSY, SCANNING, [even(), crowded], FOUR)
    alone = best_layout(BUSY, SCANNING, [even()], FOUR)
    assert {axis.dimension for axis in both.layout.axes} == {"lat", "lon"}
    assert both.load < 0.95 * alone.load


def test_an_axis_that_gains_nothing_is_left_out() -> None:
    asked_by_few = Histogram("time", (1,), (1, 1), (10, 0), (0, 10), unconstrained=1590)
    found = best_layout(BUSY, SCANNING, [even(), asked_by_few], FOUR)
    assert [axis.dimension for axis in found.layout.axes] == ["lat"]


def test_efs_that_constrain_nothing_are_never_partitioned() -> None:
    nothing = Histogram("lat", (1,), (1, 1), (0, 0), (0, 0), unconstrained=1600)
    found = best_layout(BUSY, SCANNING, [nothing], FOUR)
    assert found.layout == NO_LAYOUT
    assert not is_partition_wanted(found, help_fits=False)


def test_wide_efs_are_not_worth_it() -> None:
    found = best_layout(BUSY, SCANNING, [even(wide=16)], FOUR)
    assert not is_partition_wanted(found)


def test_cuts_lie_at_quantiles_of_the_work_not_of_the_space() -> None:
    hot = Histogram("lat", (1, 2, 3, 4, 5, 6, 7), (1, 1, 1, 1, 1, 1, 1, 9), (1,) * 8, (1,) * 8)
    (axis,) = best_layout(BUSY, SCANNING, [hot], ("home", "b")).layout.axes
    assert axis.cuts == (7,)  # the last bucket cannot be cut, and has more than half


def test_who_has_no_segment_helps_in_the_one_that_cannot_be_cut() -> None:
    hot = Histogram("lat", (1,), (1, 9), (800, 800), (800, 800))
    (axis,) = best_layout(BUSY, SCANNING, [hot], FOUR).layout.axes
    assert axis.owners == (("home",), ("b", "c", "d"))


def test_where_an_index_costs_little_an_ef_matching_gains_nothing() -> None:
    indexed = Costs(ea_s=1e-4, ef_looked_at_s=0.0, match_s=4.5e-8, ef_registered_s=0.0)
    assert not is_partition_wanted(best_layout(BUSY, indexed, [even()], FOUR))


def test_between_the_thresholds_nothing_changes() -> None:
    layout = Layout((Axis("lat", (), (("home",),)),))
    for ratio in (PARTITION_BELOW + 0.01, HELP_ABOVE - 0.01):
        choice = Choice(layout, ratio, 1.0, 0.5)
        assert not is_partition_wanted(choice)
        assert not is_help_wanted(choice)
    assert is_partition_wanted(Choice(layout, PARTITION_BELOW, 1.0, 0.5))
    assert is_help_wanted(Choice(layout, HELP_ABOVE, 1.0, 0.5))


def test_memory_alone_is_a_reason_to_partition_and_to_stay() -> None:
    choice = Choice(Layout((Axis("lat", (), (("home",),)),)), 0.99, 1.0, 0.3)
    assert is_partition_wanted(choice, help_fits=False, fits=True)
    assert not is_partition_wanted(choice, help_fits=False, fits=False)
    assert not is_help_wanted(choice, help_fits=False)


def test_costs_and_histograms_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInput, match="match_s"):
        Costs(0.0, 0.0, float("nan"), 0.0)
    with pytest.raises(InvalidInput, match="begins"):
        Histogram("lat", (1,), (1, 1), (1,), (1, 1))
