"""What the machines of a run cost; just-enough beside machines of fixed sizes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from load_monitor.elastic.policy import ElasticPolicy
from ops_sim.elastic.scenario import Prices, Scenario
from ops_sim.elastic.simulation import Run, simulate
from utuple.errors import InvalidInput

JUST_ENOUGH = "just enough"
_MINUTE_S = 60.0
_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Bill:
    machines: str
    """just enough, or the name of the fixed size."""
    made: int
    """Machines, beside the first."""
    memory_mb: float
    """Of all of them together."""
    machine_hours: float
    gb_hours: float
    cost: float
    overload_minutes: float
    """In which the load was above what the servers can do."""
    waiting_minutes: float
    """In which servers waited for a place."""
    servers_most: int


def bill(name: str, run: Run, prices: Prices, until_s: float) -> Bill:
    """The first machine is there in any case, and paid for."""
    spans = [
        (machine, ((machine.deleted_s or until_s) - machine.ordered_s) / _HOUR_S)
        for machine in run.machines
    ]
    steps_minute = _steps_per_minute(run)
    return Bill(
        name,
        len(run.added),
        sum(machine.memory_mb for machine in run.added),
        sum(hours for _, hours in spans),
        sum(machine.memory_mb / 1024 * hours for machine, hours in spans),
        sum(prices.hour(machine.cpu, machine.memory_mb) * hours for machine, hours in spans),
        sum(moment.present > 1 for moment in run.moments) / steps_minute,
        sum(moment.waiting > 0 for moment in run.moments) / steps_minute,
        max(moment.servers for moment in run.moments),
    )


def _steps_per_minute(run: Run) -> float:
    return 1 / (run.moments[1].minute - run.moments[0].minute) if len(run.moments) > 1 else 1.0


def compared(policy: ElasticPolicy, scenario: Scenario) -> Iterator[tuple[Run, Bill]]:
    """As the policy has it first, then with each of the fixed sizes."""
    until_s = scenario.durations.minutes * _MINUTE_S
    run = simulate(policy, scenario)
    yield run, bill(JUST_ENOUGH, run, scenario.prices, until_s)
    for kind in scenario.prices.types:
        try:
            fixed = replace(
                policy,
                machines=replace(
                    policy.machines, fixed_cpu=kind.cpu, fixed_memory_mb=kind.memory_mb
                ),
            )
        except InvalidInput as error:
            raise InvalidInput("simulation.price.type", kind.name, error.rule) from None
        run = simulate(fixed, scenario)
        yield run, bill(kind.name, run, scenario.prices, until_s)
