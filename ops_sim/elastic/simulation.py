"""Minute by minute: what the live controller decides under a load, and what becomes of it. Pure.

The load is spread evenly over the servers that serve; how it is spread in truth is what `utuple plan placement` simulates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from load_monitor.elastic.actions import (
    Action,
    AddServer,
    CreateMachine,
    DeleteMachine,
    DrainServer,
    RemoveServer,
)
from load_monitor.elastic.controller import Controller
from load_monitor.elastic.policy import ElasticPolicy
from load_monitor.elastic.seen import Machine, Seen, SeenServer
from load_monitor.window import LOAD_MAX
from ops_sim.elastic.scenario import Scenario

_MINUTE_S = 60.0


@dataclass(slots=True)
class SimulatedServer:
    machine: str
    serves_s: float
    """From when on."""
    out_s: float | None = None
    """It leaves, and is in no line from then on."""


@dataclass(slots=True)
class SimulatedMachine:
    name: str
    cpu: int
    memory_mb: float
    waiting: int
    """Servers that waited when it was ordered."""
    ordered_s: float
    ready_s: float
    deleted_s: float | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One look."""

    minute: float
    load: float
    servers: int
    waiting: int
    machines: int
    present: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class Happening:
    minute: float
    what: str
    why: str


@dataclass(slots=True)
class Run:
    machines: list[SimulatedMachine] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    warnings: list[Happening] = field(default_factory=list)
    decided_s: list[float] = field(default_factory=list)
    """When the number of servers was changed."""

    @property
    def added(self) -> list[SimulatedMachine]:
        """Without the one that was there."""
        return self.machines[1:]


class _World:
    def __init__(self, policy: ElasticPolicy, scenario: Scenario) -> None:
        self.scenario = scenario
        self.controller = Controller(policy)
        self.run = Run()
        first = scenario.machine
        self.run.machines.append(
            SimulatedMachine("machine-1", first.cpu, first.memory_mb, 0, 0.0, 0.0)
        )
        self.servers = {
            f"server-{at + 1}": SimulatedServer("machine-1", 0.0)
            for at in range(scenario.durations.servers)
        }
        self.names = scenario.durations.servers

    def step(self, now_s: float) -> None:
        seen = self._seen(now_s)
        decision = self.controller.step(seen)
        if self.controller.decided_s == now_s:
            self.run.decided_s.append(now_s)
        for action in decision.actions:
            self._do(action, now_s)
            if not isinstance(action, RemoveServer):
                self._note(now_s, str(action), action.why)
        if decision.warning:
            self.run.warnings.append(Happening(now_s / _MINUTE_S, "warning", decision.warning))
        self._look(seen)

    def _seen(self, now_s: float) -> Seen:
        working = [s for s in self.servers.values() if s.serves_s <= now_s and s.out_s is None]
        load = self.scenario.load_at(now_s / _MINUTE_S)
        each = min(LOAD_MAX, load / len(working)) if working else 0.0
        newest_s = max((server.serves_s for server in self.servers.values()), default=0.0)
        is_settling = newest_s and now_s < newest_s + self.scenario.durations.settle_s
        return Seen(
            now_s,
            tuple(
                SeenServer(
                    name,
                    server.machine,
                    serves=server.serves_s <= now_s,
                    processing=each if server.out_s is None else 0.0,
                    processing_lately=each if server.out_s is None else 0.0,
                    leaving=server.out_s is not None,
                    is_out=server.out_s is not None and server.out_s <= now_s,
                )
                for name, server in self.servers.items()
            ),
            tuple(
                Machine(machine.name, machine.cpu, machine.memory_mb, machine.ready_s <= now_s)
                for machine in self.run.machines
                if machine.deleted_s is None
            ),
            "load moves to the new servers" if is_settling else "",
            next_server=self.names + 1,
        )

    def _do(self, action: Action, now_s: float) -> None:
        durations = self.scenario.durations
        match action:
            case AddServer():
                started = SimulatedServer(action.machine, now_s + durations.start_s)
                self.servers.setdefault(action.name, started)
                self.names = max(self.names, int(action.name.rpartition("-")[2]))
            case DrainServer():
                self.servers[action.name].out_s = now_s + durations.drain_s
            case RemoveServer():
                del self.servers[action.name]
            case CreateMachine():
                self.run.machines.append(self._ordered(action.machine, now_s))
            case DeleteMachine():
                for machine in self.run.machines:
                    if machine.name == action.name and machine.deleted_s is None:
                        machine.deleted_s = now_s

    def _ordered(self, machine: Machine, now_s: float) -> SimulatedMachine:
        return SimulatedMachine(
            machine.name,
            machine.cpu,
            machine.memory_mb,
            len(self.controller.waiting),
            now_s,
            now_s + self.scenario.durations.boot_s,
        )

    def _note(self, now_s: float, what: str, why: str) -> None:
        self.run.happenings.append(Happening(now_s / _MINUTE_S, what, why))

    def _look(self, seen: Seen) -> None:
        current = seen.current
        present = sum(server.processing for server in current) / len(current) if current else 0.0
        minute = seen.now_s / _MINUTE_S
        self.run.moments.append(
            Moment(
                minute,
                self.scenario.load_at(minute),
                len(current),
                len(self.controller.waiting),
                len(seen.machines),
                present,
                sum(machine.memory_mb for machine in seen.machines),
            )
        )


def simulate(policy: ElasticPolicy, scenario: Scenario) -> Run:
    world = _World(policy, scenario)
    step_s = scenario.durations.step_s
    for at in range(int(scenario.durations.minutes * _MINUTE_S / step_s) + 1):
        world.step(at * step_s)
    return world.run
