"""One mutant and its seeds: those that noticed it before, or a search from 0 on."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count, islice
from multiprocessing.pool import Pool
from pathlib import Path

from assignment_manager.ring import COPIES
from tests.virtual.__main__ import LONGEST_S
from tests.virtual.mutants.directories import OF_MANY_MANAGERS
from tests.virtual.mutants.table import MUTANTS
from tests.virtual.plan import Planner
from tests.virtual.run import run_seed
from tests.virtual.world.world import dice_of

_FILE = Path(__file__).with_name("seeds.json")
_KEPT = 3
"""Seeds remembered of each: what one of them notices no more, another may."""
_FIRST = 4
_LONG_ENOUGH_S = 40.0
"""For one that was caught: some make every call wait in vain, and seeds long."""


@dataclass
class Caught:
    by: list[int] = field(default_factory=list)
    """Seeds."""
    tried: int = 0
    took_s: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.by)

    def __str__(self) -> str:
        if not self.by:
            return f"NOT CAUGHT by {self.tried} seeds ({self.took_s:.0f} s)"
        return f"caught by {len(self.by)} of {self.tried} seeds, first {self.by[0]} ({self.took_s:.0f} s)"


@dataclass(frozen=True)
class Remembered:
    """By mutant, the seeds that noticed it last."""

    by_name: Mapping[str, Sequence[int]]

    @classmethod
    def read(cls) -> Remembered:
        return cls(json.loads(_FILE.read_text()))

    def seeds(self, name: str) -> Sequence[int]:
        return self.by_name.get(name, ())

    def updated(self, by: Mapping[str, Sequence[int]]) -> Remembered:
        """New seeds first; of mutants that are gone nothing is kept."""
        known = {
            name: list(dict.fromkeys((*by.get(name, ()), *self.seeds(name))))[:_KEPT]
            for name in MUTANTS
        }
        return Remembered({name: seeds for name, seeds in known.items() if seeds})

    def write(self) -> None:
        lines = (f"{json.dumps(name)}: {list(seeds)}" for name, seeds in self.by_name.items())
        _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def is_noticed(name: str, seed: int) -> bool:
    """Without a name every rule is in force."""
    logging.disable(logging.CRITICAL)
    with MUTANTS[name]() if name else nullcontext():
        return bool(run_seed(seed, every_scene=True).violations)


@cache
def _fails_anyhow(seed: int) -> bool:
    """With every rule in force, too: it proves nothing."""
    return is_noticed("", seed)


def first_catch(tried: tuple[str, Sequence[int]]) -> tuple[str, Caught]:
    """The first of these seeds that notices it."""
    name, seeds = tried
    began_s, caught = time.monotonic(), Caught()
    for seed in seeds:
        caught.tried += 1
        if is_noticed(name, seed) and not _fails_anyhow(seed):
            caught.by.append(seed)
            break
    caught.took_s = time.monotonic() - began_s
    return name, caught


def searched(name: str, pool: Pool, most: int, enough: int) -> Caught:
    """Seed by seed until one notices, and then on until `enough` were tried or it has taken long enough."""
    began_s, caught = time.monotonic(), Caught()
    seeds = list(islice(_seeds_for(name), most))
    found = pool.imap(partial(is_noticed, name), seeds)
    for seed in seeds:
        if caught and (caught.tried >= enough or caught.took_s > _LONG_ENOUGH_S):
            break
        if found.next(LONGEST_S) and not _fails_anyhow(seed):
            caught.by.append(seed)
        caught.tried += 1
        caught.took_s = time.monotonic() - began_s
    return caught


def first_seeds(name: str) -> list[int]:
    """For one that no seed is remembered for."""
    return list(islice(_seeds_for(name), _FIRST))


def _seeds_for(name: str) -> Iterator[int]:
    """Those in which it can show."""
    return filter(_has_many_managers, count()) if name in OF_MANY_MANAGERS else count()


@cache
def _has_many_managers(seed: int) -> bool:
    return Planner(dice_of(seed, "plan")).plan().shape.managers > COPIES + 1
