"""`utuple sca add` and `utuple sca remove`: how many sCA servers share the devices of a cluster on this machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json_block

if TYPE_CHECKING:
    from utuple.admin.programs import Sca
    from utuple.local.folder import DataFolder
    from utuple.local.layout import Layout

SETTLE_LIMIT_S = 60.0
"""For all to share the devices out anew: seconds, usually; as long as a uTupleServer is down, it waits for that."""

Leaver = Annotated[str, typer.Argument(metavar="NAME", help="The sCA server that is to leave.")]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until its share of the devices has moved.")
]


def add(at: At = AT_DEFAULT, data: Data = None, wait: Wait = True, json: Json = False) -> None:
    """Start one more sCA server; it takes its share of the devices from the others.

    Devices are shared out by a hash of subject, type and address, so only
    those that the new one wins move. They move by themselves; commands go
    on meanwhile. The cluster remembers it: `utuple up` starts it again.
    """
    from utuple.cli.life import folder_of
    from utuple.cli.moving.following import speaker
    from utuple.local.supervising.requests import Request, ask

    began_s, say = time.monotonic(), speaker(json)
    folder = folder_of(data, addresses(at))
    added = ask(folder, Request("add-sca"))
    say(f"{added['name']} is started at {added['address']}")
    shares = _settled(folder, say) if wait else None
    if json:
        seconds = round(time.monotonic() - began_s, 3)
        print_json_block({**added, "scas": shares, "seconds": seconds})


def remove(
    name: Leaver, at: At = AT_DEFAULT, data: Data = None, wait: Wait = True, json: Json = False
) -> None:
    """Stop an sCA server for good; its devices go to the others first, and commands go on.

    The last one cannot be removed: no device could be commanded any more.
    """
    from utuple.cli.life import folder_of
    from utuple.cli.moving.following import speaker
    from utuple.local.supervising.requests import Request, ask

    began_s, say = time.monotonic(), speaker(json)
    folder = folder_of(data, addresses(at))
    removed = ask(folder, Request("remove-sca", name))
    say(f"{name} is stopped")
    shares = _settled(folder, say) if wait else None
    if json:
        seconds = round(time.monotonic() - began_s, 3)
        print_json_block({**removed, "scas": shares, "seconds": seconds})


def _settled(folder: DataFolder, say: Callable[[str], None]) -> list[Sca]:
    """When those there are share the devices out, and none is on its way any more."""
    from utuple.admin.choice import NotDone

    found = asyncio.run(_watched(folder, say))
    if found is None:
        raise NotDone(
            f"the sCA servers have not settled after {SETTLE_LIMIT_S:g} s: see `utuple sca list`; a uTupleServer that is "
            "down keeps them waiting"
        )
    for sca in found:
        say(f"{sca.name}: devices {sca.devices:,}, connected {sca.connected:,}")
    return found


async def _watched(folder: DataFolder, say: Callable[[str], None]) -> list[Sca] | None:
    """Looked up at every look: another order may change how many there are meanwhile."""
    from utuple.admin.watching import looks
    from utuple.cli.moving.following import Told

    told = Told(say)
    async for snapshot in looks(_layout(folder).manager_addresses, SETTLE_LIMIT_S):
        names = _layout(folder).sca_names
        scas = [sca for sca in snapshot.scas if sca.name in names]
        if len(scas) == len(names) and all(
            sca.settled and sorted(sca.scas) == sorted(names) for sca in scas
        ):
            return scas
        told("waiting for devices to move")
    return None


def _layout(folder: DataFolder) -> Layout:
    cluster = folder.read_cluster()
    assert cluster is not None  # its supervisor has just answered
    return cluster.layout
