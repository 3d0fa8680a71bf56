"""What elasticity wants done, each with its reason in words. Pure.

All of them may be given again: creating what is there, or deleting what is not, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from load_monitor.elastic.seen import Machine


@dataclass(frozen=True, slots=True)
class AddServer:
    name: str
    machine: str
    """Empty: where the provisioner's own scheduler finds a place."""
    why: str

    def __str__(self) -> str:
        return f"add {self.name}" + (f" on {self.machine}" if self.machine else "")


@dataclass(frozen=True, slots=True)
class DrainServer:
    name: str
    why: str

    def __str__(self) -> str:
        return f"drain {self.name}"


@dataclass(frozen=True, slots=True)
class RemoveServer:
    """It has left every line, or never had a place."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"remove {self.name}"


@dataclass(frozen=True, slots=True)
class CreateMachine:
    machine: Machine
    why: str

    @property
    def name(self) -> str:
        return self.machine.name

    def __str__(self) -> str:
        machine = self.machine
        return f"create {machine.name} ({machine.cpu} vCPU, {machine.memory_mb:,.0f} MB)"


@dataclass(frozen=True, slots=True)
class DeleteMachine:
    name: str
    why: str

    def __str__(self) -> str:
        return f"delete {self.name}"


Action: TypeAlias = AddServer | DrainServer | RemoveServer | CreateMachine | DeleteMachine


@dataclass(frozen=True, slots=True)
class Decision:
    actions: tuple[Action, ...] = ()
    why: str = ""
    """Of the number of servers, whether it changes or not."""
    warning: str = ""
    """What cannot be done; said once."""
    waits: str = ""
    """What is waited for before the next decision."""
