"""`utuple bench plan`: scenarios × days through Spark against the same rules as a plain Python loop.

In one run, on this machine: the plain loop of ops_sim/operation/daily_rule.py over some worlds, then as many scenarios as asked
in `local[2]`, and twice as many, in turns. The session is started and warm before the clock is; what it took to start
is told apart. Memory is that of the JVM and its Python workers together, at its highest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.benchmark import Options, Say
from benchmarks.figures import Figures, Target
from benchmarks.plan.memory import PeakMemory
from ops_sim.operation import paper
from ops_sim.operation.daily_rule import operate
from ops_sim.operation.demand import Demand, devices_of, lead_times_of
from ops_sim.operation.draws import draws_of
from ops_sim.operation.policy import Policy
from ops_sim.operation.study import Study, scenario_rows, table
from ops_sim.operation.sweep import policies
from ops_sim.schema import SCENARIOS
from ops_sim.spark.session import spark_session

MASTER = "local[2]"
DEMAND = Demand("unsure", growth_spread=0.15, noise=0.03, lead_time_spread=0.2)


@dataclass(frozen=True, slots=True)
class Size:
    scenarios: int = 10_000
    days: int = 1_000
    plain: int = 60
    """Scenarios of the plain loop: about a second, from which its throughput is known well enough."""
    turns: int = 3


QUICK = Size(scenarios=400, days=200, plain=10, turns=1)


class Plan:
    def __init__(self, options: Options) -> None:
        self._size = QUICK if options.quick else Size()
        self.targets = (
            Target("ratio_python", at_least=50),
            Target("time_ratio", at_most=2.1),
            Target("memory_ratio", at_most=1.2),
        )
        self.notes = {"ours": "nothing is kept: scenarios are summed up to one row a policy"}

    async def run(self, place: Path, say: Say) -> Figures:
        """Spark blocks: it has a thread of its own, and Ctrl-C ends it with the session."""
        del place
        return await asyncio.to_thread(self._run, say)

    def _run(self, say: Say) -> Figures:
        size = self._size
        study = Study(
            (DEMAND,), (Policy(),), paper.AS_WRITTEN.study.load, size.days, size.scenarios
        )
        began_s = time.perf_counter()
        with spark_session(MASTER) as spark:

            def sum_up(study: Study) -> None:
                """Every scenario, to one row a policy."""
                rows = table(spark, study, SCENARIOS, scenario_rows)
                (row,) = policies(rows, study.days).collect()
                assert row.scenarios == study.worlds

            sum_up(replace(study, worlds=max(2, size.scenarios // 50)))
            start_s = time.perf_counter() - began_s
            say(f"Spark is warm after {start_s:.1f} s")
            plain_s, once_s, twice_s = [], [], []
            once, twice = PeakMemory(), PeakMemory()
            double = replace(study, worlds=2 * study.worlds)
            for _ in range(size.turns):
                plain_s.append(_timed(lambda: _plain(study, size.plain)))
                with once:
                    once_s.append(_timed(lambda: sum_up(study)))
                with twice:
                    twice_s.append(_timed(lambda: sum_up(double)))
                say(f"{study.worlds:,}: {once_s[-1]:.2f} s, twice: {twice_s[-1]:.2f} s")
        plain_per_s = size.plain / median(plain_s)
        per_s = size.scenarios / median(once_s)
        return {
            "ratio_python": per_s / plain_per_s,
            "time_ratio": median(twice_s) / median(once_s),
            "memory_ratio": twice.most_bytes / once.most_bytes,
            "scenarios_per_s": per_s,
            "plain_scenarios_per_s": plain_per_s,
            "seconds": median(once_s),
            "memory_mb": once.most_bytes / 1e6,
            "session_start_s": start_s,
        }


def _timed(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def _plain(study: Study, worlds: int) -> None:
    (demand,), (policy,) = study.demands, study.policies
    for world in range(worlds):
        draws = draws_of(study.seed, world, study.days)
        operate(devices_of(demand, draws), lead_times_of(demand, draws), study.load, policy)
