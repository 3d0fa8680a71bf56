"""When servers and machines come and go: every threshold, wait and limit of elasticity. Pure.

Loads are shares, as in the planner's policy. Sizes of memory are in MB as the paper counts them, of processing in vCPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from utuple.errors import InvalidInput
from utuple.model.settings import above, number, whole

SERVERS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ServerRules:
    """The inner level, table `[servers]`."""

    min: int = 1
    """Never fewer: what fails must leave enough to serve."""
    max: int = 10
    """Never more: what a runaway load may cost."""
    target: float = 0.6
    """The mean processing load that is aimed at: required = ceil(current x present / target)."""
    upper: float = 0.8
    """Servers are added only above this: between the two thresholds nothing changes. Without such a band the paper's formula
    would take servers away in the paper's own balanced phase (section 6.2.2: 7 servers at 64 %, target 90 %)."""
    lower: float = 0.3
    """Servers leave only below this."""
    memory_target: float = 0.6
    """The same three for what is stored, against the stores' capacity: servers never leave because load fell while what they
    hold would not fit elsewhere."""
    memory_upper: float = 0.75
    cpu: float = 0.5
    """What a server asks of its machine, in vCPUs."""
    memory_mb: float = 512.0
    """The same in MB."""
    cooldown_s: float = 60.0
    """Between two decisions: the load must have had time to show what the last one did."""
    leave_s: float = 60.0
    """Between two servers that leave, one at a time: each drain moves what the server holds, and costs load."""
    calm_s: float = 300.0
    """Below the lower threshold for so long before a server leaves: a pause is no end, and a drain moves everything it holds."""
    growth_max: float = 2.0
    """At most so many times as many servers after one decision, as Kubernetes has it: load that was measured on few servers says
    little about many."""
    growth_floor: int = 4
    """But up to so many in any case."""
    settle_limit_s: float = 300.0
    """Moves of load, and servers that start, are waited for so long and no longer: load that never stops moving must not keep
    the cluster from growing."""
    ahead_s: float = 0.0
    """How far ahead load is extrapolated, by the trend of the last hour: servers come before they are needed. 0: not at all."""

    def __post_init__(self) -> None:
        whole("servers.min", self.min, 1, SERVERS_MAX)
        whole("servers.max", self.max, 1, SERVERS_MAX)
        if self.min > self.max:
            raise InvalidInput(
                "servers.min", self.min, f"must not be above servers.max, {self.max}"
            )
        whole("servers.growth_floor", self.growth_floor, 1, SERVERS_MAX)
        for name in ("target", "upper", "lower", "memory_target", "memory_upper"):
            above("servers." + name, getattr(self, name))
        if not self.lower < self.target <= self.upper <= 1:
            rule = "must be lower < target <= upper <= 1"
            raise InvalidInput("servers.target", (self.lower, self.target, self.upper), rule)
        if not self.memory_target <= self.memory_upper <= 1:
            rule = "must be memory_target <= memory_upper <= 1"
            raise InvalidInput(
                "servers.memory_target", (self.memory_target, self.memory_upper), rule
            )
        above("servers.cpu", self.cpu)
        above("servers.memory_mb", self.memory_mb)
        above("servers.growth_max", self.growth_max, 1.0)
        for name in ("cooldown_s", "leave_s", "calm_s", "settle_limit_s", "ahead_s"):
            number("servers." + name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class MachineRules:
    """The outer level, table `[machines]`."""

    headroom_mb: float = 500.0
    """Added to what waiting servers ask for (section 5.2, step 4). The paper contradicts itself: its example in section 5.1 adds 200,
    its run in section 6.2.4 adds 220."""
    system_mb: float = 400.0
    """Of a machine's memory, what its own system needs (section 5.2: "more than 400 MB"): servers have the rest."""
    memory_min_mb: float = 1024.0
    """No machine is smaller: its system would not run."""
    cpu_min: int = 1
    pending_s: float = 20.0
    """A server that has waited so long for a place waits for a machine (section 5.2, step 2)."""
    empty_s: float = 300.0
    """A machine without servers is given back after this (step 8): load that returns finds it still there."""
    fixed_cpu: int = 0
    """Machines of one size instead of just enough, as many as needed; 0: just enough."""
    fixed_memory_mb: float = 0.0

    def __post_init__(self) -> None:
        for name in ("headroom_mb", "system_mb", "pending_s", "empty_s", "fixed_memory_mb"):
            number("machines." + name, getattr(self, name))
        above("machines.memory_min_mb", self.memory_min_mb)
        whole("machines.cpu_min", self.cpu_min, 1, SERVERS_MAX)
        whole("machines.fixed_cpu", self.fixed_cpu, 0, SERVERS_MAX)
        if self.system_mb > self.headroom_mb:
            rule = f"must not be above machines.headroom_mb, {self.headroom_mb:g}: a new machine would have no room for the "
            raise InvalidInput(
                "machines.system_mb", self.system_mb, rule + "servers it is made for"
            )
        if bool(self.fixed_cpu) != bool(self.fixed_memory_mb):
            rule = "is given together with machines.fixed_memory_mb, or not at all"
            raise InvalidInput("machines.fixed_cpu", self.fixed_cpu, rule)


@dataclass(frozen=True, slots=True)
class Area:
    """All that the machines together may use (section 5.1), table `[area]`."""

    cpu: int = 4
    memory_mb: float = 8192.0

    def __post_init__(self) -> None:
        whole("area.cpu", self.cpu, 1, SERVERS_MAX)
        above("area.memory_mb", self.memory_mb)


@dataclass(frozen=True, slots=True)
class ElasticPolicy:
    servers: ServerRules = field(default_factory=ServerRules)
    machines: MachineRules = field(default_factory=MachineRules)
    area: Area = field(default_factory=Area)

    def __post_init__(self) -> None:
        servers, machines, area = self.servers, self.machines, self.area
        if servers.cpu > area.cpu:
            rule = f"one server asks for more than the whole area has, {area.cpu} vCPU"
            raise InvalidInput("servers.cpu", servers.cpu, rule)
        if max(machines.memory_min_mb, servers.memory_mb + machines.headroom_mb) > area.memory_mb:
            rule = "a machine for one server, with its headroom, asks for more than the whole area has, "
            rule += f"{area.memory_mb:g} MB"
            raise InvalidInput("servers.memory_mb", servers.memory_mb, rule)
        if machines.fixed_cpu and not (
            servers.cpu <= machines.fixed_cpu
            and servers.memory_mb + machines.system_mb <= machines.fixed_memory_mb
        ):
            rule = "no server fits on a machine of that size"
            raise InvalidInput("machines.fixed_memory_mb", machines.fixed_memory_mb, rule)
