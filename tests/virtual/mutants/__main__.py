"""Each rule that carries a law is turned off in turn: the virtual cluster must notice.

python -m tests.virtual.mutants [--only NAME] [--workers 2]      each until a seed notices
python -m tests.virtual.mutants --remember                       ... and the seeds that did are the first to try from now on
python -m tests.virtual.mutants --enough 30 [--only NAME]        nothing remembered: how many of 30 seeds notice it?

Seeds that noticed a mutant before are tried first (`seeds.json`): as long as one of them does, a mutant takes a second or two. If
none does any more, seeds are searched from 0 on, up to `--seeds`. A catch counts only if the same seed is clean with every rule in
force. Most rules of the assignment managers are tried on seeds with many of them: few managers all hold everything.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from multiprocessing.pool import Pool

from tests.virtual.__main__ import settle_in
from tests.virtual.mutants.hunting import Caught, Remembered, first_catch, first_seeds, searched
from tests.virtual.mutants.table import MUTANTS

_TASKS = 20
"""Mutants, or seeds in a search, that a process takes: what trials leave behind goes with it."""


def _pool(workers: int) -> Pool:
    return multiprocessing.get_context("fork").Pool(workers, settle_in, maxtasksperchild=_TASKS)


def _one_by_one(given: argparse.Namespace, names: list[str]) -> dict[str, Caught]:
    """Each by one process, while others try other mutants: most are noticed by the first seed or two."""
    remembered = Remembered.read()
    tries = [(name, remembered.seeds(name) or first_seeds(name)) for name in names]
    found: dict[str, Caught] = {}
    with _pool(given.workers) as pool:
        for name, caught in pool.imap_unordered(first_catch, tries):
            if caught:
                _say(name, caught)
                found[name] = caught
    return found


def _say(name: str, caught: Caught) -> None:
    print(f"{name:52} {caught}", flush=True)


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.virtual.mutants", *sys.argv[1:]])
    parser = argparse.ArgumentParser(prog="python -m tests.virtual.mutants")
    parser.add_argument("--only", action="append", help="those whose names contain this; again")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=2_000, help="at most, in a search")
    parser.add_argument("--enough", type=int, default=1, help="of more than 1: count the catches")
    parser.add_argument("--remember", action="store_true", help="write the seeds that noticed")
    given = parser.parse_args()
    began_s = time.monotonic()
    only = given.only or [""]
    names = [name for name in MUTANTS if any(part in name for part in only)]
    found = {} if given.enough > 1 else _one_by_one(given, names)
    for name in names:
        if name not in found:
            with _pool(given.workers) as pool:
                found[name] = searched(name, pool, given.seeds, given.enough)
            _say(name, found[name])
    if given.remember:
        Remembered.read().updated({name: caught.by for name, caught in found.items()}).write()
    missed = [name for name, caught in found.items() if not caught]
    print(
        f"{len(found) - len(missed)} of {len(found)} caught in {time.monotonic() - began_s:.0f} s"
    )
    for name in missed:
        print(f"NOT CAUGHT: {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
