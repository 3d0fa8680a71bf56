"""The outer level: which machine has room for a server, and how large a new machine is. Pure.

Section 5.2 of the paper: what waiting servers ask for is summed up, and one machine is made that is just enough for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from load_monitor.elastic.policy import Area, ElasticPolicy, MachineRules, ServerRules
from load_monitor.elastic.seen import Machine, Seen

_ROUNDING = 1e-9


def size_for(waiting: int, servers: ServerRules, machines: MachineRules) -> tuple[int, float]:
    """vCPU and memory of a machine for that many servers (step 4)."""
    cpu = max(machines.cpu_min, math.ceil(waiting * servers.cpu - _ROUNDING))
    return cpu, max(machines.memory_min_mb, waiting * servers.memory_mb + machines.headroom_mb)


def places_on(machine: Machine, policy: ElasticPolicy) -> int:
    """How many servers it has room for when it is empty."""
    servers = policy.servers
    by_cpu = (machine.cpu + _ROUNDING) / servers.cpu
    by_memory = (machine.memory_mb - policy.machines.system_mb + _ROUNDING) / servers.memory_mb
    return max(0, math.floor(min(by_cpu, by_memory)))


def room_on(seen: Seen, policy: ElasticPolicy) -> dict[str, int]:
    """Free places of each machine that is ready, those with the fewest first: full machines leave others empty."""
    free = {
        machine.name: places_on(machine, policy) - seen.on(machine.name)
        for machine in seen.machines
        if machine.ready
    }
    return {name: free[name] for name in sorted(free, key=lambda name: (free[name], name))}


def new_machines(waiting: int, first: int, policy: ElasticPolicy) -> tuple[Machine, ...]:
    """Machines for that many servers, numbered from `first`: one that is just enough, or as many as needed of the fixed size."""
    rules = policy.machines
    if not rules.fixed_cpu:
        cpu, memory_mb = size_for(waiting, policy.servers, rules)
        return (Machine(f"machine-{first}", cpu, memory_mb, ready=False),)
    one = Machine("machine", rules.fixed_cpu, rules.fixed_memory_mb, ready=False)
    count = math.ceil(waiting / places_on(one, policy))
    return tuple(
        Machine(f"machine-{first + at}", one.cpu, one.memory_mb, ready=False) for at in range(count)
    )


def what_fits(
    made: Iterable[Machine], machines: Iterable[Machine], area: Area
) -> tuple[list[Machine], str]:
    """Of the machines that are to be made, those that the rest of the area has room for (step 5); and what is missing for the
    first that it has not."""
    cpu = area.cpu - sum(machine.cpu for machine in machines)
    memory_mb = area.memory_mb - sum(machine.memory_mb for machine in machines)
    fitting: list[Machine] = []
    for machine in made:
        if machine.cpu > cpu or machine.memory_mb > memory_mb + _ROUNDING:
            asked = f"{machine.cpu} vCPU and {machine.memory_mb:,.0f} MB"
            return (
                fitting,
                f"{asked} are needed, and {cpu} vCPU and {memory_mb:,.0f} MB are left of the area",
            )
        cpu, memory_mb = cpu - machine.cpu, memory_mb - machine.memory_mb
        fitting.append(machine)
    return fitting, ""
