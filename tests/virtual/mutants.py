"""Each rule that carries a law is turned off in turn: the virtual cluster must notice.

python -m tests.virtual.mutants [--seeds 2000] [--only NAME] [--enough 30]

A mutant is tried seed by seed until it is caught, and then on until `enough` seeds were tried. A catch counts
only if the same seed is clean with every rule in force.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.virtual.moving_mutants import MOVING
from tests.virtual.run import run_seed
from tests.virtual.serving_mutants import SERVING

MUTANTS = {**SERVING, **MOVING}


def is_caught(name: str, seed: int) -> bool:
    logging.disable(logging.CRITICAL)
    with MUTANTS[name]():
        if not run_seed(seed).violations:
            return False
    return not run_seed(seed).violations  # a seed that fails anyhow proves nothing


def hunt(name: str, seeds: int, enough: int, workers: int) -> tuple[list[int], int]:
    """The seeds that caught it, and how many were tried."""
    caught: list[int] = []
    tried = 0
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, mp_context=context)
    try:
        for tried, found in enumerate(pool.map(partial(is_caught, name), range(seeds)), 1):
            if found:
                caught.append(tried - 1)
            if caught and tried >= enough:
                break
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return caught, tried


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
    for name in [name for name in MUTANTS if given.only in name]:
        began_s = time.monotonic()
        caught, tried = hunt(name, given.seeds, given.enough, given.workers)
        missed += not caught
        said = f"caught by {len(caught)} of {tried} seeds, first seed {caught[0]}" if caught else ""
        said = said or f"NOT CAUGHT in {tried} seeds"
        print(f"{name:45} {said} ({time.monotonic() - began_s:.0f} s)", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
