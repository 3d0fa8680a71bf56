"""The closed form of the ON/OFF queue against a numeric solution and a simulation (paper 004, section IV)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ops_sim.dropping import chain
from ops_sim.dropping.simulation import Mechanism, simulate
from ops_sim.dropping.study import batch_means, compared, response_points
from utuple.cluster.on_off_queue import OnOffQueue, zeta_for_mean

PAPER = OnOffQueue(2.0, 8.0, 20.0, 20.0)
BEHIND_INPUT = replace(PAPER, input_service_per_s=16.0)
GRID = [
    queue
    for arrival, service, (on, off), zeta in product(
        (0.01, 0.5, 2.0, 7.0),
        (0.6, 4.5, 8.0, 300.0),
        ((20.0, 20.0), (5.0, 60.0), (100.0, 3.0), (0.2, 0.5)),
        (0.0, 0.1, 0.5, 0.9, 1.0),
    )
    if (queue := OnOffQueue(arrival, service, on, off, zeta)).is_stable
]


def test_the_closed_form_agrees_with_the_numeric_solution_over_a_grid() -> None:
    assert len(GRID) > 200
    for queue in GRID:
        assert queue.mean_response_s == pytest.approx(chain.mean_response_s(queue), rel=1e-6), queue


@pytest.mark.parametrize("zeta", [0.0, 0.35, 1.0])
@pytest.mark.parametrize("seconds", [0.1, 1.0, 7.0, 20.0, 60.0])
def test_the_shares_within_a_time_agree_with_the_numeric_solution(
    zeta: float, seconds: float
) -> None:
    queue = replace(PAPER, zeta=zeta)
    assert queue.share_within(seconds) == pytest.approx(
        chain.share_within(queue, seconds), abs=1e-7
    )


@pytest.mark.parametrize("zeta", [0.25, 0.5, 1.0])
def test_the_simulation_agrees_within_its_interval(zeta: float) -> None:
    """Of 40 runs 38 should: their means of 20 batches have an interval of 95 %. Fewer than 34 is no chance (0.1 %)."""
    queue = replace(PAPER, zeta=zeta)
    runs = [simulate(queue, 200_000, np.random.default_rng(seed)) for seed in range(40)]
    inside = 0
    for mean_s, half_s in map(batch_means, runs):
        inside += abs(mean_s - queue.mean_response_s) <= half_s
        assert half_s < 0.25 * mean_s
    assert inside >= 34
    assert not any(run.lost_while_on_share for run in runs)
    within = np.mean([(run.response_s <= 20.0).mean() for run in runs])
    assert within == pytest.approx(queue.share_within(20.0), abs=0.005)
    success = np.mean([run.success_share for run in runs])
    assert success == pytest.approx(queue.success_share, abs=0.005)


@pytest.mark.parametrize(
    ("mechanism", "limit", "success"),
    [
        ("probabilistic", 0.0, 0.675),
        ("expiry", 29.0, 0.851),
        ("expiry_exponential", 38.2, 0.779),
        ("buffer", 22.0, 0.695),
    ],
)
def test_figure_6_at_two_matches_per_second(
    mechanism: Mechanism, limit: float, success: float
) -> None:
    """Each set to a mean of 7 s."""
    queue = replace(BEHIND_INPUT, zeta=zeta_for_mean(BEHIND_INPUT, 7.0))
    outcome = simulate(queue, 3_000_000, np.random.default_rng(6), mechanism, limit)
    assert outcome.mean_response_s == pytest.approx(7.0, abs=0.15)
    assert outcome.success_share == pytest.approx(success, abs=0.005)


def test_a_mechanism_is_set_to_the_threshold_by_itself() -> None:
    """The paper's figure 5 gives a lifetime and a buffer for each rate; here they are found."""
    expiry = compared(BEHIND_INPUT, "expiry", 7.0, 20_000, seed=1)
    assert expiry.mean_response_s == pytest.approx(7.0, abs=0.01)
    buffer = compared(BEHIND_INPUT, "buffer", 7.0, 20_000, seed=1)
    assert buffer.limit == int(buffer.limit)
    assert buffer.mean_response_s <= 7.0


def test_figure_7_only_finite_buffers_lose_what_arrives_while_the_reader_is_there() -> None:
    busy = replace(BEHIND_INPUT, arrival_per_s=7.7)
    lost = compared(busy, "buffer", 7.0, 100_000, seed=2).lost_while_on_share
    assert lost == pytest.approx(0.06, abs=0.01)
    assert compared(busy, "probabilistic", 7.0, 100_000, seed=2).lost_while_on_share == 0.0


def test_a_point_beyond_saturation_has_no_simulation() -> None:
    (point,) = response_points(PAPER, [1.0], [4.5], 1_000, seed=1)
    assert point.simulated_s is None
