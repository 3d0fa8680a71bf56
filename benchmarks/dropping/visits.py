"""When readers are here: exponential periods as in the paper, or those of a recording, compressed in time. Pure but for the recording's
file, which lies beside the checkout (../shared/data, or where UTUPLE_RECORDINGS says) and is not part of the product."""

from __future__ import annotations

import csv
import gzip
import os
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from random import Random

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
RECORDING = Path(os.environ.get("UTUPLE_RECORDINGS", _BESIDE)) / "derived_online_capmetro.csv.gz"
_LONGEST_S = 4 * 3_600.0
"""A longer gap is the end of a vehicle's day."""

Period = tuple[float, float]
"""Seconds away, and then here."""


def drawn(on_s: float, off_s: float, dice: Random) -> Iterator[Period]:
    while True:
        yield dice.expovariate(1 / off_s), dice.expovariate(1 / on_s)


def recorded(count: int, cycle_s: float) -> list[list[Period]]:
    """Of so many vehicles, those with the most periods in one day; compressed so that the mean cycle takes `cycle_s`."""
    said: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    with gzip.open(RECORDING, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            at = datetime.fromisoformat(row["time"])
            said[row["address"], at.date().isoformat()].append((at.timestamp(), int(row["value"])))
    longest = sorted(said.values(), key=len, reverse=True)[:count]
    return [_compressed(list(_periods(turns)), cycle_s) for turns in longest]


def _periods(turns: list[tuple[float, int]]) -> Iterator[Period]:
    """From each going to the next coming, and on to the next going."""
    goings = [at for at, (_, is_on) in enumerate(turns) if not is_on]
    for going, next_going in pairwise(goings):
        comings = [turns[at][0] for at in range(going, next_going) if turns[at][1]]
        if comings:
            away_s, here_s = comings[0] - turns[going][0], turns[next_going][0] - comings[0]
            if 0 < away_s < _LONGEST_S and 0 < here_s < _LONGEST_S:
                yield away_s, here_s


def _compressed(periods: list[Period], cycle_s: float) -> list[Period]:
    mean_s = sum(map(sum, periods)) / len(periods)
    return [(away_s / mean_s * cycle_s, here_s / mean_s * cycle_s) for away_s, here_s in periods]
