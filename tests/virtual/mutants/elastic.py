"""The rules of elasticity that a law rests on (docs/elasticity.md), each with a switch that turns it off."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from load_monitor import elasticity
from load_monitor.elastic import seeing
from load_monitor.elastic.seen import Inventory, Seen, next_number
from tests.replacing import replaced
from tests.virtual.programs.elastic import VirtualProvisioner


def removed_when_asked_to_leave() -> AbstractContextManager[None]:
    """By loss, not by drain: what it holds is gone."""
    seen_of = seeing.seen_of

    def hasty(*given: Any, **named: Any) -> Seen:
        seen = seen_of(*given, **named)
        servers = (replace(s, is_out=s.leaving and s.serves) for s in seen.servers)
        return replace(seen, servers=tuple(servers))

    return replaced(elasticity, "seen_of", hasty)


def names_are_used_again() -> AbstractContextManager[None]:
    """A reader's position in what the first server of that name held is taken for one in the second's."""
    inventory = VirtualProvisioner.inventory

    async def forgetful(self: VirtualProvisioner) -> Inventory:
        found = await inventory(self)
        return replace(found, next_server=next_number(server.name for server in found.servers))

    return replaced(VirtualProvisioner, "inventory", forgetful)


ELASTIC = {
    "removed when asked to leave": removed_when_asked_to_leave,
    "names of servers are used again": names_are_used_again,
}
