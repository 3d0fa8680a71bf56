"""What the benchmark `read` stores and asks."""

from __future__ import annotations

import numpy as np

from benchmarks.read import recording
from benchmarks.read.recording import DAY_US, LIFETIME_US, MATCHES, Recording

NOW_US = 1_800_000_000_000_000


def tape() -> Recording:
    count = 5_000
    dice = np.random.default_rng(7)
    return Recording(
        np.sort(dice.integers(0, DAY_US, count)),
        dice.normal(30, 0.1, count),
        dice.normal(-97, 0.1, count),
        [f"bus-{n % 40}" for n in range(count)],
        [b'{"speed":1.0}'] * count,
        1,
    )


def test_it_is_repeated_in_time_until_there_are_enough_and_ends_by_now() -> None:
    starts = recording.starts_us(tape(), 12_000, NOW_US)
    assert [NOW_US - start for start in starts] == [3 * DAY_US, 2 * DAY_US, DAY_US]


def test_a_repetition_is_whole_in_seq_order_and_not_expired() -> None:
    found = list(recording.batches(tape(), NOW_US - DAY_US, 101, 2_000))
    assert [len(batch) for batch in found] == [2_000, 2_000, 1_000]
    assert [seq for batch in found for seq in batch.seqs] == list(range(101, 5_101))
    ids = {batch.columns.id_at(row) for batch in found for row in range(len(batch))}
    assert len(ids) == 5_000
    for batch in found:
        assert all(
            expires_us == time_us + LIFETIME_US and time_us < NOW_US < expires_us
            for time_us, expires_us in zip(batch.columns.times_us, batch.expires_us, strict=True)
        )


def test_an_area_and_an_hour_match_about_a_hundred_and_an_address_is_one_of_them() -> None:
    own = tape()
    starts = recording.starts_us(own, 10_000, NOW_US)
    asked = list(recording.questions(own, starts, 10, seed=3))
    assert len(asked) == 20
    for area, address in zip(asked[::2], asked[1::2], strict=True):
        assert area.box is not None and area.until_us - area.since_us == DAY_US // 24
        start_us = max(start for start in starts if start <= (area.since_us + area.until_us) // 2)
        south, west, north, east = area.box
        times = own.times_us + start_us
        inside = (times >= area.since_us) & (times < area.until_us)
        inside &= (own.lats >= south) & (own.lats <= north)
        inside &= (own.lons >= west) & (own.lons <= east)
        assert MATCHES * 0.5 <= inside.sum() <= MATCHES + 1
        assert address.address in own.addresses and address.box is None
        assert address.until_us - address.since_us == 7 * DAY_US
