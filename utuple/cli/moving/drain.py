"""`utuple server drain`: a server leaves the cluster, with everything it holds brought elsewhere."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from utuple.cli.options import AT_DEFAULT, At, Data, Json, addresses, print_json_block

if TYPE_CHECKING:
    from utuple.admin.snapshot import Snapshot
    from utuple.cli.moving.following import Say
    from utuple.local.folder import DataFolder

STOP_LIMIT_S = 120.0
"""For the supervisor, once the server is in no line: it lets it say its last word first."""
_FOR_EVER_S = 10 * 365 * 86_400.0
"""A drain takes as long as its uTuples take to be brought over; whoever waits can stop waiting."""
_SHOW_S = 1.0
_NUMBER = re.compile(r"[0-9]+")
"""Those in advice change all the time."""

Leaver = Annotated[str, typer.Argument(metavar="NAME", help="The server that is to leave.")]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until it has left, and show how far it is.")
]
Cancel = Annotated[
    bool, typer.Option("--cancel", help="It stays after all, if nothing was brought away yet.")
]


def drain(
    name: Leaver,
    at: At = AT_DEFAULT,
    data: Data = None,
    wait: Wait = True,
    cancel: Cancel = False,
    json: Json = False,
) -> None:
    """Take a server out of the cluster; nothing it holds is lost, and no program notices.

    It goes off in every section, with helpers in its place; what it holds
    is brought to them in the background; then it leaves. The load monitor
    orders these moves, so one must be running. A server that `utuple up` or
    `utuple server add` started is stopped at the end and does not come
    back. Ctrl-C ends the waiting, not the drain.
    """
    from utuple.cli.life import folder_of
    from utuple.cli.moving.following import speaker

    asked, say = addresses(at), speaker(json)
    folder = folder_of(data, asked)
    if cancel:
        result = asyncio.run(_cancel(asked, folder, name, say))
    else:
        result = asyncio.run(_drain(asked, folder, name, wait, say))
    if json:
        print_json_block(result)


async def _cancel(at: list[str], folder: DataFolder, name: str, say: Say) -> dict[str, Any]:
    from utuple.admin import transport
    from utuple.admin.choice import NotDone, may_stay, serving
    from utuple.admin.snapshot import snapshot_of
    from utuple.local.supervising.requests import Request, ask

    snapshot = await snapshot_of(at)
    may_stay(snapshot, name)
    answer = await transport.leave(serving(snapshot, name).address, stay=True)
    if answer.leaving:
        raise NotDone(f"{name} leaves all the same: {answer.reason}")
    if _is_here(folder, snapshot, name):
        await asyncio.to_thread(ask, folder, Request("stay", name))
    say(f"{name} stays")
    return {"name": name, "leaving": False}


async def _drain(
    at: list[str], folder: DataFolder, name: str, wait: bool, say: Say
) -> dict[str, Any]:
    from utuple.admin.choice import may_leave, require_monitor
    from utuple.admin.leaving import tell_to_leave
    from utuple.admin.snapshot import snapshot_of
    from utuple.local.supervising.requests import Request, ask

    began_s = time.monotonic()
    snapshot = await snapshot_of(at)
    may_leave(snapshot, name)
    require_monitor(snapshot)
    is_here = _is_here(folder, snapshot, name)
    await tell_to_leave(at, snapshot, name)
    if is_here:
        await asyncio.to_thread(ask, folder, Request("drain", name))
    if not wait:
        say(f"{name} is leaving: see `utuple status` and `utuple moves`")
        return {"name": name, "leaving": True}
    known = {move.id for move in snapshot.moves}
    last = await _until_out(at, name, folder if is_here else None, say)
    if is_here:
        say(f"waiting for {name} to be stopped")
        await asyncio.to_thread(_await_stop, folder, name)
    else:
        await _forget(at, last, name)
    own = [m for m in last.moves if m.member == name and m.id not in known]
    rows, seconds = sum(move.rows for move in own), round(time.monotonic() - began_s, 3)
    ended = "it is stopped" if is_here else "stop its process now: nobody asks for it any more"
    say(
        f"{name} is drained: {len(own)} moves, {rows:,} uTuples brought over, {seconds:.1f} s; {ended}"
    )
    return {
        "name": name,
        "leaving": True,
        "drained": True,
        "stopped": is_here,
        "moves": own,
        "rows": rows,
        "seconds": seconds,
    }


async def _until_out(at: Sequence[str], name: str, folder: DataFolder | None, say: Say) -> Snapshot:
    """The last look at the cluster in which it was known."""
    from utuple.admin.choice import NotDone
    from utuple.admin.leaving import rest_of
    from utuple.admin.watching import looks
    from utuple.cli.moving.following import Told

    told, advised = Told(say), Told(say)
    last: Snapshot | None = None
    async for snapshot in looks(at, _FOR_EVER_S, _SHOW_S):
        server = snapshot.server(name)
        if server is None or (folder is not None and _is_forgotten(folder, name)):
            return last or snapshot
        last = snapshot
        if server.stays:
            raise NotDone(f"{name} was told to stay: the drain is over")
        rest = rest_of(name, snapshot)
        told(f"{name}: {rest}")
        if rest.is_out:
            return snapshot
        for said in snapshot.advice:
            advised(f"the load monitor says: {said}", _NUMBER.sub("", said))
    raise AssertionError("looks has no end")


def _is_here(folder: DataFolder, snapshot: Snapshot, name: str) -> bool:
    """Is it a program of the cluster in this folder, and not a namesake's?"""
    from utuple.local.supervising.requests import is_running

    cluster = folder.read_cluster()
    program = cluster.layout.program(name) if cluster is not None else None
    server = snapshot.server(name)
    if program is None or server is None or not is_running(folder):
        return False
    return server.address == program.address


def _is_forgotten(folder: DataFolder, name: str) -> bool:
    cluster = folder.read_cluster()
    return cluster is not None and cluster.layout.program(name) is None


def _await_stop(folder: DataFolder, name: str) -> None:
    from utuple.admin.choice import NotDone

    deadline_s = time.monotonic() + STOP_LIMIT_S
    while not _is_forgotten(folder, name) or folder.started(name) is not None:
        if time.monotonic() > deadline_s:
            raise NotDone(f"{name} has left, but is not stopped: see {folder.log('supervisor')}")
        time.sleep(0.1)


async def _forget(at: Sequence[str], snapshot: Snapshot, name: str) -> None:
    """Managers forget a server that somebody else stops."""
    from utuple.admin import transport
    from utuple.cluster.line import ServerInfo
    from utuple.runtime.clock import now_us

    server = snapshot.server(name)
    if server is not None:
        managers = [manager.address for manager in snapshot.managers] or list(at)
        gone = ServerInfo(name, server.address, transport.GONE, now_us())
        await transport.announce_gone(managers, gone)
