"""The virtual cluster, seed by seed.

python -m tests.virtual --seeds 200 [--first 0] [--workers 2]     a summary; 1 if anything is wrong
python -m tests.virtual --seeds 5 --twice                         each again in the same process: the same history?
python -m tests.virtual --seed 17                                 one history, told as it happens
"""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tests.virtual.run import Result, run_seed
from tests.virtual.summary import Summary

_CHUNK = 5
_TASKS = 8
"""Chunks a process takes: what trials leave behind (some 10 MB each) goes with it."""
LONGEST_S = 300.0
"""No chunk takes so long: its process was killed."""
_ENOUGH = 1_000
"""So many seeds meet everything the coverage asks for."""


def settle_in() -> None:
    """What is imported stays: it need not be looked at whenever a trial is thrown away."""
    gc.collect()
    gc.freeze()


def results(
    seeds: Sequence[int], workers: int, run: Callable[[int], Result] = run_seed
) -> Iterator[Result]:
    """In processes of their own, one worker's too: a process never lets go of what its trials leave behind."""
    context = multiprocessing.get_context("fork")
    settle_in()  # once, for all processes that are forked from this one
    with context.Pool(workers, maxtasksperchild=_TASKS) as pool:
        chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
        found = pool.imap(partial(_each, run), chunks)
        for _ in chunks:
            yield from found.next(LONGEST_S)


def _each(run: Callable[[int], Result], seeds: Sequence[int]) -> list[Result]:
    return [_told(run, seed) for seed in seeds]


def _told(run: Callable[[int], Result], seed: int) -> Result:
    """An error of the trial itself comes with its seed, and as text: what it holds does not travel between processes."""
    try:
        return run(seed)
    except Exception:  # noqa: BLE001  whatever it is, it is raised again
        raise RuntimeError(f"seed {seed}: {traceback.format_exc()}") from None


def run_twice(seed: int) -> Result:
    first, again = run_seed(seed), run_seed(seed)
    if first.history != again.history:
        first.wrong.append(f"run again it is another history: {first.history}, {again.history}")
    return first


def run_many(seeds: Sequence[int], found: Iterator[Result]) -> int:
    logging.disable(logging.CRITICAL)
    count = len(seeds)
    summary = Summary(count)
    began_s = time.monotonic()
    for result in found:
        summary.add(result)
        for violation in result.violations:
            print(f"seed {result.seed}: {violation}", flush=True)
    print(summary.text(time.monotonic() - began_s))
    covered = count < _ENOUGH or not summary.uncovered
    return 0 if summary.is_clean and covered else 1


def replay(seed: int) -> int:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="          log %(message)s")
    result = run_seed(seed, print)
    summary = Summary(1)
    summary.add(result)
    for violation in result.violations:
        print(f"seed {seed}: {violation}")
    print(summary.text(result.cpu_s))
    return 0 if summary.is_clean else 1


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order in sets of strings
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.virtual", *sys.argv[1:]])
    parser = argparse.ArgumentParser(prog="python -m tests.virtual")
    parser.add_argument("--seed", type=int, help="replay this one, and tell all")
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--twice", action="store_true", help="each again, in the same process")
    given = parser.parse_args()
    if given.seed is not None:
        return replay(given.seed)
    seeds = range(given.first, given.first + given.seeds)
    run = run_twice if given.twice else run_seed
    return run_many(seeds, results(seeds, given.workers, run))


if __name__ == "__main__":
    sys.exit(main())
