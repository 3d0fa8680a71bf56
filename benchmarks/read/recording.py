"""What is stored: positions of a bus fleet, a real recording where there is one (../shared/data beside the checkout),
else made up; repeated in time until there are enough. And what is asked of it."""

from __future__ import annotations

import csv
import gzip
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from utuple.client.sending.rows import ids_of
from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.utuple import Family
from utuple.store.contract import Batch

FAMILY = Family("bus", "speed")
SOURCE = Path(__file__).resolve().parents[3] / "shared" / "data" / "capmetro_vehicles.csv.gz"
DAY_US, HOUR_US = 86_400 * MICROSECONDS, 3_600 * MICROSECONDS
LIFETIME_US = 800 * DAY_US
MATCHES = 100
_MADE_UP_DAYS, _MADE_UP_ROWS, _MADE_UP_BUSES = 20, 500_000, 400
_ID_BITS = 74


@dataclass(frozen=True, slots=True)
class Recording:
    """In order of time, which counts from the first day; days without a reading are left out."""

    times_us: NDArray[np.int64]
    lats: NDArray[np.float64]
    lons: NDArray[np.float64]
    addresses: list[str]
    payloads: list[bytes]
    days: int

    def __len__(self) -> int:
        return len(self.addresses)


@dataclass(frozen=True, slots=True)
class Question:
    since_us: int
    until_us: int
    box: tuple[float, float, float, float] | None = None
    """South, west, north, east."""
    address: str | None = None


def recording() -> Recording:
    return _recorded(SOURCE) if SOURCE.exists() else _made_up()


def _recorded(path: Path) -> Recording:
    with gzip.open(path, "rt", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["type"] == FAMILY.type]
    rows = [row for row in rows if row["subject"] == FAMILY.subject]
    dates = {date: day for day, date in enumerate(sorted({row["time"][:10] for row in rows}))}
    times = []
    for row in rows:
        at = datetime.fromisoformat(row["time"]).astimezone(UTC)
        seconds = at.hour * 3_600 + at.minute * 60 + at.second
        times.append(dates[row["time"][:10]] * DAY_US + seconds * MICROSECONDS)
    return Recording(
        np.array(times, np.int64),
        np.array([float(row["lat"]) for row in rows]),
        np.array([float(row["lon"]) for row in rows]),
        [row["address"] for row in rows],
        [b'{"speed":%s}' % repr(float(row["value"])).encode() for row in rows],
        len(dates),
    )


def _made_up() -> Recording:
    dice = np.random.default_rng(1)
    times = np.sort(dice.integers(0, _MADE_UP_DAYS * DAY_US, _MADE_UP_ROWS))
    return Recording(
        times,
        dice.normal(30.3, 0.1, _MADE_UP_ROWS),
        dice.normal(-97.7, 0.1, _MADE_UP_ROWS),
        [f"bus-{n}" for n in dice.integers(0, _MADE_UP_BUSES, _MADE_UP_ROWS)],
        [b'{"speed":%.1f}' % speed for speed in dice.uniform(0, 30, _MADE_UP_ROWS)],
        _MADE_UP_DAYS,
    )


def starts_us(tape: Recording, count: int, now_us: int) -> list[int]:
    """When each repetition begins: they end by now, and hold `count` EAs or a little more."""
    rounds = -(-count // len(tape))
    first_us = now_us - rounds * tape.days * DAY_US
    return [first_us + number * tape.days * DAY_US for number in range(rounds)]


def batches(tape: Recording, start_us: int, first_seq: int, rows: int) -> Iterator[Batch]:
    """One repetition, as a server would commit it."""
    for at in range(0, len(tape), rows):
        end = min(at + rows, len(tape))
        count = end - at
        times = tape.times_us[at:end] + start_us
        columns = Columns(
            families=(FAMILY,),
            family=array("I", bytes(4 * count)),
            ids=ids_of(int(times[0]), Random(start_us + at).getrandbits(_ID_BITS), count),
            times_us=array("q", times.tobytes()),
            lats=array("d", tape.lats[at:end].tobytes()),
            lons=array("d", tape.lons[at:end].tobytes()),
            lifetimes_us=array("q", [LIFETIME_US]) * count,
            addresses=tape.addresses[at:end],
            payloads=tape.payloads[at:end],
        )
        seqs = array("Q", range(first_seq + at, first_seq + end))
        yield Batch(columns, seqs, array("q", (times + LIFETIME_US).tobytes()))


def questions(tape: Recording, starts: list[int], count: int, seed: int) -> Iterator[Question]:
    """In turns an area and an hour that match about a hundred, and one address over a week."""
    dice = Random(seed)
    for _ in range(count):
        row, start_us = dice.randrange(len(tape)), dice.choice(starts)
        at_us = int(tape.times_us[row])
        low, high = np.searchsorted(tape.times_us, [at_us - HOUR_US // 2, at_us + HOUR_US // 2])
        lat, lon = float(tape.lats[row]), float(tape.lons[row])
        far = np.sort(
            np.maximum(np.abs(tape.lats[low:high] - lat), np.abs(tape.lons[low:high] - lon))
        )
        reach = float(far[min(MATCHES, len(far)) - 1])
        middle_us = start_us + at_us
        yield Question(
            middle_us - HOUR_US // 2,
            middle_us + HOUR_US // 2,
            box=(lat - reach, lon - reach, lat + reach, lon + reach),
        )
        week = (middle_us - 7 * DAY_US // 2, middle_us + 7 * DAY_US // 2)
        yield Question(*week, address=tape.addresses[row])
