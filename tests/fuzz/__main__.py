"""python -m tests.fuzz [--inputs N] [--only TARGET] [--first SEED]: tells what was tried and what broke."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from tests.fuzz.engine import Report, steps
from tests.fuzz.targets import TARGETS, Target

_PORTION = 200_000
"""Inputs from one seed: then the corpus begins anew."""


async def in_loop(target: Target, inputs: int, seed: int) -> Report:
    """A connection asks for the running loop; now and then it does what it has to."""
    report = Report()
    for _ in steps(target, inputs, seed, report):
        await asyncio.sleep(0)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="of all targets together")
    parser.add_argument("--only", choices=TARGETS, help="this target alone")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    chosen = [given.only] if given.only else list(TARGETS)
    shares = sum(TARGETS[name].share for name in chosen)
    total, broken = 0, 0
    for name in chosen:
        target = TARGETS[name]
        left, seed, began_s = (
            int(given.inputs * target.share / shares),
            given.first,
            time.monotonic(),
        )
        while left > 0:
            report = asyncio.run(in_loop(target, min(left, _PORTION), seed))
            left, seed = left - report.inputs, seed + 1
            total += report.inputs
            broken += len(report.broken)
            sys.stdout.write(
                f"{name}: {report.inputs} inputs, {report.refused} refused, {report.lines} lines, corpus "
                f"{report.corpus}, slowest {report.slowest_s * 1e3:.1f} ms, {report.growth_mb:+.1f} MB, "
                f"{time.monotonic() - began_s:.0f} s\n"
            )
            sys.stdout.write("".join(f"  BROKEN {one[:400]}\n" for one in report.broken[:5]))
            sys.stdout.flush()
    sys.stdout.write(f"{total} inputs, {broken} broken\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
