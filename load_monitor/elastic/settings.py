"""elastic.toml: what a person wants of elasticity, read and checked. Pure.

One file serves everywhere: `utuple up --elastic` acts by it, `utuple elastic plan` says what it would do, and `utuple elastic simulate`
tries it on the load of its table `[simulation]`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from load_monitor.elastic.policy import Area, ElasticPolicy, MachineRules, ServerRules
from utuple.errors import InvalidInput
from utuple.model.settings import above, build, check_keys, number

SIMULATION = "simulation"
_TABLES = ("servers", "machines", "area", "provisioner", "forecast", SIMULATION)


class Kind(StrEnum):
    LOCAL = "local"
    KUBERNETES = "kubernetes"
    EXEC = "exec"


@dataclass(frozen=True, slots=True)
class ProvisionerRules:
    """Who makes servers and machines, table `[provisioner]`."""

    kind: Kind = Kind.LOCAL
    limit_s: float = 60.0
    """One that has not answered by then is asked again: everything may be asked for twice."""
    ready_s: float = 0.0
    """local: how long a new machine, which is a share of this one, takes until it is ready."""
    command: str = ""
    """exec: the script that is called, see docs/elasticity.md."""
    namespace: str = "default"
    """kubernetes: where the StatefulSet is."""
    stateful_set: str = "server"
    """kubernetes: its name; its pods are the servers."""
    pool: str = ""
    """kubernetes: the NodePool (Karpenter) whose machines are asked for by size; empty: the cluster has the machines it has."""

    def __post_init__(self) -> None:
        above("provisioner.limit_s", self.limit_s)
        number("provisioner.ready_s", self.ready_s)
        if (self.kind is Kind.EXEC) != bool(self.command):
            rule = 'is what kind = "exec" needs, and nothing else uses'
            raise InvalidInput("provisioner.command", self.command, rule)


@dataclass(frozen=True, slots=True)
class ForecastRules:
    """Servers ahead of the load, table `[forecast]`."""

    file: str = ""
    """What `utuple plan forecast --json` said: from the day on which its order is to be installed there are at least so many
    servers. Empty: none."""


@dataclass(frozen=True, slots=True)
class ElasticSettings:
    policy: ElasticPolicy = field(default_factory=ElasticPolicy)
    provisioner: ProvisionerRules = field(default_factory=ProvisionerRules)
    forecast: ForecastRules = field(default_factory=ForecastRules)
    simulation: Mapping[str, Any] = field(default_factory=dict)
    """As it was written: `ops_sim.elastic` reads it."""


def settings_of(text: str, name: str = "elastic.toml") -> ElasticSettings:
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(name, "", f"is no TOML: {error}") from None
    check_keys(name, told, _TABLES)
    simulation = told.get(SIMULATION, {})
    if not isinstance(simulation, Mapping):
        raise InvalidInput(SIMULATION, simulation, f"must be a table: [{SIMULATION}]")
    return ElasticSettings(
        ElasticPolicy(
            build(ServerRules, "servers", told.get("servers", {})),
            build(MachineRules, "machines", told.get("machines", {})),
            build(Area, "area", told.get("area", {})),
        ),
        build(ProvisionerRules, "provisioner", told.get("provisioner", {})),
        build(ForecastRules, "forecast", told.get("forecast", {})),
        simulation,
    )
