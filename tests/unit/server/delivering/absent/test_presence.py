"""What a server knows of a reader's habits, and the ζ that follows."""

from __future__ import annotations

import pytest

from utuple.cluster.on_off_queue import OnOffQueue, zeta_for_mean, zeta_for_share
from utuple.model.terms import newest, respond_within
from utuple.server.delivering.absent.presence import LEAST_SAMPLES, Presence, decode_presence

SECOND_US = 1_000_000


def lived(cycles: int, on_s: float = 20, off_s: float = 20, per_s: float = 2) -> Presence:
    presence = Presence(True, 0)
    live(presence, cycles, on_s, off_s, per_s)
    return presence


def live(presence: Presence, cycles: int, on_s: float, off_s: float, per_s: float) -> None:
    """So many visits, each followed by an absence, while events arrive at an even rate."""
    for _ in range(cycles):
        for is_on, period_s in ((False, on_s), (True, off_s)):
            presence.arrived += round(per_s * period_s)
            presence.turn(presence.since_us + round(period_s * SECOND_US), is_on=is_on)


def test_means_and_rates_are_those_of_the_periods() -> None:
    presence = lived(10, on_s=30, off_s=10, per_s=4)
    assert (presence.on_s, presence.off_s) == pytest.approx((30, 10))
    assert presence.own_per_s == pytest.approx(4)
    presence.others_per_s = 2.5
    assert presence.arrival_per_s == pytest.approx(6.5)


def test_zeta_is_that_of_the_model() -> None:
    """Paper 004, figure 7: threshold 7 s, T 20/20, λ = 2, μ = 8."""
    presence = lived(10)
    presence.service_per_s = 8.0
    queue = OnOffQueue(2, 8, 20, 20)
    assert presence.zeta_for(respond_within(7)) == pytest.approx(zeta_for_mean(queue, 7))
    of_share = presence.zeta_for(respond_within(25, share=0.8))
    assert of_share == pytest.approx(zeta_for_share(queue, 25, 0.8))


def test_with_too_few_samples_nothing_is_dropped() -> None:
    for cycles in range(LEAST_SAMPLES):
        presence = lived(cycles)
        presence.service_per_s = 8.0
        assert presence.zeta_for(respond_within(7)) is None
    presence = lived(LEAST_SAMPLES)
    assert presence.zeta_for(respond_within(7)) is None, "how fast it works is not known"
    presence.service_per_s = 8.0
    assert presence.zeta_for(respond_within(7)) is not None
    assert presence.zeta_for(newest(3)) is None, "no share: it is decided by count"


def test_a_threshold_that_cannot_be_met_drops_everything() -> None:
    presence = lived(10, per_s=7)
    presence.service_per_s = 8.0
    assert presence.zeta_for(respond_within(0.5)) == 0.0
    presence.service_per_s = 5.0  # below what arrives: none can
    assert presence.zeta_for(respond_within(1000)) == 0.0


def test_zeta_follows_a_reader_that_stays_away_ten_times_as_long() -> None:
    presence = lived(100)
    presence.service_per_s = 8.0
    before = presence.zeta_for(respond_within(7))
    live(presence, 100, 20, 200, 2)
    after = presence.zeta_for(respond_within(7))
    assert presence.off_s == pytest.approx(200, rel=0.05)
    assert before is not None and after is not None and after < before / 3


def test_a_period_that_a_clock_made_negative_is_no_sample() -> None:
    presence = lived(10)
    before = presence.on_count, presence.on_sum_s
    presence.turn(presence.since_us - SECOND_US, is_on=False)
    assert (presence.on_count, presence.on_sum_s) == before and not presence.is_on


def test_it_comes_back_from_its_note() -> None:
    presence = lived(7)
    presence.zeta = 0.25
    assert decode_presence(presence.encode()) == presence
