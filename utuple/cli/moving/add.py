"""`utuple server add`: one more uTupleServer for a cluster on this machine."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json_block

if TYPE_CHECKING:
    from utuple.admin.moves import ShownMove
    from utuple.cli.moving.following import Say

TAKE_OVER_LIMIT_S = 90.0
"""From its start: it reads its store, the monitor sees it, and the move is made. Seconds, usually."""

Name = Annotated[
    str, typer.Option("--name", help="Its name, for ever; the next free server-N unless given.")
]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until it has taken over a section.")
]
Database = Annotated[
    str,
    typer.Option(
        metavar="URL", help="Its PostgreSQL, in a cluster that was started with --database."
    ),
]


def add(
    name: Name = "",
    at: At = AT_DEFAULT,
    data: Data = None,
    wait: Wait = True,
    database: Database = "",
    json: Json = False,
) -> None:
    """Start one more server; it takes over a part of the most loaded section.

    The server gets a database of its own and joins the cluster of this
    machine that is at the address, or in the data folder. The load monitor sees a server without a section, and has the
    most loaded one split at the key of a stored uTuple: the new server
    takes what lies beyond. No program notices. The cluster remembers the
    server: `utuple up` starts it again, until it is drained.
    """
    from utuple.cli.life import folder_of
    from utuple.cli.moving.following import speaker
    from utuple.local.supervising.requests import Request, ask

    began_s = time.monotonic()
    folder = folder_of(data, addresses(at))
    added = ask(folder, Request("add", name, database))
    name = added["name"]
    say = speaker(json)
    say(f"{name} is started at {added['address']}")
    cluster = folder.read_cluster()
    assert cluster is not None  # it has just been written
    managers = cluster.layout.manager_addresses
    move = asyncio.run(_taken_over(managers, name, say)) if wait else None
    if json:
        seconds = round(time.monotonic() - began_s, 3)
        print_json_block({**added, "move": move, "seconds": seconds})


async def _taken_over(managers: list[str], name: str, say: Say) -> ShownMove:
    """The move that gave it a section."""
    from utuple.admin.choice import NotDone, require_monitor
    from utuple.admin.watching import looks
    from utuple.cli.moving.following import Told, summary
    from utuple.runtime.clock import now_us

    told = Told(say)
    is_up = False
    async for snapshot in looks(managers, TAKE_OVER_LIMIT_S):
        server = snapshot.server(name)
        is_up = server is not None and server.serves
        if not is_up:
            told(f"waiting for {name} to serve")
            continue
        require_monitor(snapshot)
        for move in reversed(snapshot.moves):
            if move.helper == name and move.is_settled(now_us()):
                told(summary(move))
                return move
        told(f"{name} serves; waiting for the load monitor to give it a section")
    if not is_up:
        raise NotDone(f"{name} does not serve after {TAKE_OVER_LIMIT_S:g} s: see logs/{name}.log")
    raise NotDone(
        f"{name} serves, but has no section after {TAKE_OVER_LIMIT_S:g} s: no section has several keys, "
        "or the servers have just moved load. It stays, and helps when load comes: see `utuple status` "
        "and `utuple moves`"
    )
