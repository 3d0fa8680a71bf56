"""What a provisioner promises. Everything goes by name and may be asked for again: creating what is there, and deleting what is
not there, changes nothing. An answer that is lost, or comes late, is therefore no harm."""

from __future__ import annotations

from typing import Protocol

from load_monitor.elastic.controller import Placing
from load_monitor.elastic.seen import Inventory, Machine
from utuple.errors import UTupleError


class ProvisioningFailed(UTupleError):
    """It could not be done now; it is asked for again."""


class Provisioner(Protocol):
    @property
    def placing(self) -> Placing: ...

    async def hold(self, holder: str) -> bool:
        """Of several controllers, one acts: is it this one? Asked before every look."""

    async def inventory(self) -> Inventory:
        """What is there now: made and not deleted, ready or not."""

    async def create_machine(self, machine: Machine) -> None:
        """One of that name that is there stays as it is."""

    async def delete_machine(self, name: str) -> None:
        """Only without servers."""

    async def create_server(self, name: str, machine: str) -> None:
        """On that machine; without one, where the provisioner's own scheduler finds a place."""

    async def delete_server(self, name: str) -> bool:
        """A server that is in no line, or waits for a place. False: somebody else stops it, and sees to the rest."""

    async def close(self) -> None: ...
