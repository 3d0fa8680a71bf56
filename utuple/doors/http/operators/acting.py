"""Orders of operators, as the command line gives them: answered when they are accepted, and followed in the moves. With
`dry_run` nothing is done, and the answer says what would be."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from utuple.admin import choice, transport
from utuple.admin.leaving import tell_to_leave
from utuple.admin.programs import shown_line
from utuple.admin.snapshot import snapshot_of
from utuple.cluster.move import target
from utuple.doors.http.door import Door, door_of
from utuple.doors.http.problems import Problem, encoded, invalid
from utuple.doors.http.verbs import asking
from utuple.doors.http.verbs.body import JSON, json_object_if_any
from utuple.local.folder import DataFolder
from utuple.local.supervising.requests import Request as Asked
from utuple.local.supervising.requests import ask, is_running


async def _said(request: Request, **kinds: type) -> tuple[Door, dict[str, Any]]:
    """What the body says, each of its kind."""
    door = door_of(request)
    asking.check_known(request.query_params, ())
    said = await json_object_if_any(request, door.limits)
    kinds["dry_run"] = bool
    asking.check_fields(said, tuple(kinds))
    for name, kind in kinds.items():
        value = said.get(name)
        if value is not None and type(value) is not kind:
            raise invalid(name, value, f"must be {'text' if kind is str else 'true or false'}")
    return door, said


def _answer(said: Mapping[str, Any], *, dry_run: bool) -> Response:
    return Response(encoded({**said, "dry_run": dry_run}), 200 if dry_run else 202, media_type=JSON)


async def add(request: Request) -> Response:
    """One more server of the cluster on this machine."""
    door, said = await _said(request, name=str)
    folder = _folder(door)
    cluster = folder.read_cluster()
    assert cluster is not None  # it runs
    layout = cluster.layout.with_server(said.get("name") or None)
    program = layout.of_role(type(layout.programs[0].role).SERVER)[-1]
    if said.get("dry_run"):
        return _answer({"name": program.name, "address": program.address}, dry_run=True)
    added = await asyncio.to_thread(ask, folder, Asked("add", said.get("name") or ""))
    return _answer(added, dry_run=False)


def _folder(door: Door) -> DataFolder:
    folder = DataFolder(Path(door.config.data)) if door.config.data else None
    if folder is None or not is_running(folder):
        raise Problem(
            409,
            "Not here",
            "this door was not started by the cluster's supervisor (`utuple up`), which starts servers: on another "
            "machine start one by hand: python -m utuple.server --create --name NAME --listen HOST:PORT "
            "--database postgresql://… --managers HOST:PORT,…",
        )
    return folder


async def help_server(request: Request) -> Response:
    """Another server helps it with a section."""
    door, said = await _said(request, helper=str, memory=bool, section=str)
    name = request.path_params["name"]
    snapshot = await snapshot_of(door.config.managers, brief=True)
    choice.serving(snapshot, name)
    line = choice.line_to_help(snapshot, name, said.get("section"))
    helper = choice.helper_for(snapshot, line, said.get("helper"))
    move = choice.order_for_help(line, name, helper, memory=bool(said.get("memory")))
    told = {
        "helper": helper,
        "before": asdict(shown_line(line)),
        "after": [asdict(shown_line(made)) for made in target(move, line)],
    }
    if said.get("dry_run"):
        return _answer(told, dry_run=True)
    answer = await transport.move(choice.serving(snapshot, line.home).address, move)
    if not answer.accepted:
        raise Problem(409, "Refused", f"{line.home} refuses: {answer.reason}")
    return _answer({**told, "move": answer.id.hex()}, dry_run=False)


async def drain(request: Request) -> Response:
    """It leaves, with everything it holds brought elsewhere; or stays after all."""
    door, said = await _said(request, cancel=bool)
    name = request.path_params["name"]
    snapshot = await snapshot_of(door.config.managers, brief=True)
    server = choice.serving(snapshot, name)
    stay = bool(said.get("cancel"))
    if stay:
        choice.may_stay(snapshot, name)
    else:
        choice.may_leave(snapshot, name)
        choice.require_monitor(snapshot)
    lines = [asdict(shown_line(line)) for line in snapshot.lines_of(name)]
    told = {"name": name, "leaving": not stay, "lines": lines}
    if said.get("dry_run"):
        return _answer(told, dry_run=True)
    if not stay:
        await tell_to_leave(door.config.managers, snapshot, name)
    elif (answer := await transport.leave(server.address, stay=True)).leaving:
        raise Problem(409, "Refused", f"{name}: {answer.reason}")
    await _tell_supervisor(door, name, "stay" if stay else "drain")
    return _answer(told, dry_run=False)


async def _tell_supervisor(door: Door, name: str, verb: str) -> None:
    """Which stops a server of its own when it is out."""
    folder = DataFolder(Path(door.config.data)) if door.config.data else None
    cluster = folder.read_cluster() if folder is not None and is_running(folder) else None
    if folder is not None and cluster is not None and cluster.layout.program(name) is not None:
        await asyncio.to_thread(ask, folder, Asked(verb, name))


async def forget(request: Request) -> Response:
    """A reader that will not come back. Again, it does nothing."""
    door = door_of(request)
    asking.check_known(request.query_params, ())
    name = request.path_params["reader"]
    if not name:
        raise invalid("reader", name, "must not be empty")
    servers = (await snapshot_of(door.config.managers)).servers
    held = [s.name for s in servers if any(r.reader == name and r.connected for r in s.readers)]
    if held:
        raise Problem(
            409, "Connected", f"reader {name!r} is connected at {', '.join(held)}: stop it first"
        )
    serving = [one for one in servers if one.serves]
    answers = {one.name: await transport.forget_reader(one.address, name) for one in serving}
    door.readers.forget(name)
    forgotten = {server: said.formals for server, said in answers.items() if said.formals}
    return Response(encoded({"reader": name, "forgotten": forgotten}), media_type=JSON)
