"""Each rule that carries a law is turned off in turn: the virtual cluster must notice.

python -m tests.virtual.mutants [--seeds 2000] [--only NAME] [--enough 30]

A mutant is tried seed by seed until it is caught, and then on until `enough` seeds were tried or it has taken long
enough. A catch counts only if the same seed is clean with every rule in force. Most rules of the assignment managers are tried on
seeds with many of them: few managers all hold everything.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache, partial
from itertools import count, islice

from assignment_manager.ring import COPIES
from tests.virtual.__main__ import LONGEST_S, settle_in
from tests.virtual.mutants.directories import OF_MANY_MANAGERS
from tests.virtual.mutants.table import MUTANTS
from tests.virtual.plan import Planner
from tests.virtual.run import run_seed
from tests.virtual.world.world import dice_of

_LONG_ENOUGH_S = 40.0
"""For one that was caught: some make every call wait in vain, and seeds long."""
_TASKS = 100
"""Seeds a process takes: what trials leave behind goes with it."""


def is_noticed(name: str, seed: int) -> bool:
    """Without a name every rule is in force."""
    logging.disable(logging.CRITICAL)
    with MUTANTS[name]() if name else nullcontext():
        return bool(run_seed(seed, every_scene=True).violations)


def seeds_for(name: str) -> Iterator[int]:
    """Those in which it can show."""
    return filter(_has_many_managers, count()) if name in OF_MANY_MANAGERS else count()


@cache
def _has_many_managers(seed: int) -> bool:
    return Planner(dice_of(seed, "plan")).plan().shape.managers > COPIES + 1


class Hunt:
    def __init__(self, seeds: int, enough: int, workers: int) -> None:
        self._seeds = seeds
        self._enough = enough
        self._workers = workers
        self._fails_anyhow: dict[int, bool] = {}

    def run(self, name: str) -> tuple[list[int], int]:
        """The seeds that caught it, and how many were tried."""
        caught: list[int] = []
        tried = 0
        until_s = time.monotonic() + _LONG_ENOUGH_S
        context = multiprocessing.get_context("fork")
        seeds = list(islice(seeds_for(name), self._seeds))
        with context.Pool(self._workers, settle_in, maxtasksperchild=_TASKS) as pool:
            found = pool.imap(partial(is_noticed, name), seeds)
            while tried < self._seeds and not (
                caught and (tried >= self._enough or time.monotonic() > until_s)
            ):
                if found.next(LONGEST_S) and not self._is_proof_of_nothing(seeds[tried]):
                    caught.append(seeds[tried])
                tried += 1
        return caught, tried

    def _is_proof_of_nothing(self, seed: int) -> bool:
        """It fails with every rule in force, too."""
        if seed not in self._fails_anyhow:
            self._fails_anyhow[seed] = is_noticed("", seed)
        return self._fails_anyhow[seed]


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.virtual.mutants", *sys.argv[1:]])
    parser = argparse.ArgumentParser(prog="python -m tests.virtual.mutants")
    parser.add_argument("--seeds", type=int, default=2_000, help="at most, until it is caught")
    parser.add_argument("--enough", type=int, default=30, help="at least, to count the catches")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="those whose names contain this")
    given = parser.parse_args()
    missed = 0
    hunt = Hunt(given.seeds, given.enough, given.workers)
    for name in [name for name in MUTANTS if given.only in name]:
        began_s = time.monotonic()
        caught, tried = hunt.run(name)
        missed += not caught
        said = f"caught by {len(caught)} of {tried} seeds, first seed {caught[0]}" if caught else ""
        said = said or f"NOT CAUGHT in {tried} seeds"
        print(f"{name:45} {said} ({time.monotonic() - began_s:.0f} s)", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
