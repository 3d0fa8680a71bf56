"""The queue of a reader that comes and goes: the figures of paper 004, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from utuple.cluster.on_off_queue import OnOffQueue, zeta_for_mean, zeta_for_share
from utuple.errors import InvalidInput

PAPER = OnOffQueue(arrival_per_s=2.0, service_per_s=8.0, on_s=20.0, off_s=20.0)
BEHIND_INPUT = replace(PAPER, input_service_per_s=16.0)
NAN = float("nan")


@pytest.mark.parametrize(
    ("zeta", "mean_s"), [(0.25, 5.0909), (0.5, 9.7333), (0.75, 14.7302), (1.0, 20.5)]
)
def test_figure_4_at_two_matches_per_second(zeta: float, mean_s: float) -> None:
    assert replace(PAPER, zeta=zeta).mean_response_s == pytest.approx(mean_s, abs=5e-5)


@pytest.mark.parametrize(
    ("zeta", "saturation_per_s"), [(0.25, 6.4), (0.5, 16 / 3), (0.75, 32 / 7), (1.0, 4.0)]
)
def test_figure_4_ends_where_more_joins_than_is_delivered(
    zeta: float, saturation_per_s: float
) -> None:
    below = replace(PAPER, zeta=zeta, arrival_per_s=saturation_per_s * (1 - 1e-9))
    above = replace(PAPER, zeta=zeta, arrival_per_s=saturation_per_s * (1 + 1e-9))
    assert below.is_stable
    assert below.mean_response_s > 1e6
    assert not above.is_stable
    assert above.mean_response_s == math.inf


@pytest.mark.parametrize(
    ("arrival_per_s", "zeta"),
    [(1e-9, 0.502347), (0.05, 0.49737), (2.0, 0.34980), (4.0, 0.23839), (7.7, 0.00108)],
)
def test_the_share_kept_for_a_threshold_of_seven_seconds(arrival_per_s: float, zeta: float) -> None:
    queue = replace(BEHIND_INPUT, arrival_per_s=arrival_per_s)
    found = zeta_for_mean(queue, 7.0)
    assert found == pytest.approx(zeta, abs=1e-5)
    assert replace(queue, zeta=found).mean_response_s == pytest.approx(7.0, abs=1e-9)


def test_what_is_never_away_is_an_ordinary_queue() -> None:
    hardly_away = replace(PAPER, off_s=1e-9)
    assert hardly_away.mean_response_s == pytest.approx(1 / (8.0 - 2.0), rel=1e-6)
    assert hardly_away.share_within(0.25) == pytest.approx(1 - math.exp(-6.0 * 0.25), abs=1e-6)


def test_a_threshold_that_nothing_has_to_be_dropped_for_keeps_everything() -> None:
    assert zeta_for_mean(PAPER, 21.0) == 1.0
    assert zeta_for_share(PAPER, 1e4, 0.5) == 1.0


def test_a_mean_of_seven_seconds_leaves_a_long_tail() -> None:
    """A quarter of the deliveries at ζ = 0.35 joined while the reader was away, and wait for its return."""
    queue = replace(PAPER, zeta=0.35)
    joined_off = queue.zeta * queue.off_s / (queue.on_s + queue.zeta * queue.off_s)
    assert joined_off == pytest.approx(0.26, abs=0.005)
    assert 1 - queue.share_within(20.0, joined_while_off=True) == pytest.approx(0.448, abs=0.001)
    assert 1 - queue.share_within(20.0) == pytest.approx(0.123, abs=0.001)


def test_a_share_within_a_threshold_keeps_less_than_the_mean_does() -> None:
    by_share = zeta_for_share(PAPER, 20.0, 0.95)
    assert replace(PAPER, zeta=by_share).share_within(20.0) == pytest.approx(0.95, abs=1e-9)
    assert by_share < zeta_for_mean(PAPER, 20.0)


def test_the_least_threshold_that_can_be_met_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"threshold_s: 7\.0 .* 7\.017 s is the least"):
        zeta_for_mean(replace(BEHIND_INPUT, arrival_per_s=7.71), 7.0)


def test_no_threshold_can_be_met_when_more_arrives_than_is_ever_delivered() -> None:
    with pytest.raises(InvalidInput, match=r"arrival_per_s: 8\.0 .* no threshold can be met"):
        zeta_for_mean(replace(BEHIND_INPUT, arrival_per_s=8.0), 7.0)


def test_the_largest_share_that_can_be_met_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"share: 0\.999 .* is the most that come within 1 s"):
        zeta_for_share(PAPER, 1.0, 0.999)


@pytest.mark.parametrize("field", ["arrival_per_s", "service_per_s", "on_s", "off_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, NAN, math.inf])
def test_rates_and_periods_are_above_0_and_finite(field: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=rf"^{field}: .* above 0 and finite"):
        replace(PAPER, **{field: value})


@pytest.mark.parametrize("zeta", [-0.1, 1.1, NAN])
def test_zeta_is_a_share(zeta: float) -> None:
    with pytest.raises(InvalidInput, match=r"^zeta: .* 0 to 1"):
        replace(PAPER, zeta=zeta)


@pytest.mark.parametrize("threshold_s", [0.0, -1.0, NAN, math.inf])
def test_a_threshold_is_above_0_and_finite(threshold_s: float) -> None:
    with pytest.raises(InvalidInput, match=r"^threshold_s: .* above 0 and finite"):
        zeta_for_mean(PAPER, threshold_s)


def test_an_input_queue_that_only_grows_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^input_service_per_s: .* above the 2 that arrive"):
        replace(PAPER, input_service_per_s=2.0)
