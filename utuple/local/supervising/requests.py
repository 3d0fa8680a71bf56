"""What a running supervisor is asked for, and its answers: two files each in the folder's requests/, so that
it works the same in the foreground and detached, whatever the folder's path.

    ID.json           written whole by who asks; removed once it is answered
    ID.answer.json    written whole by the supervisor; removed by who asked
"""

from __future__ import annotations

import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from utuple.local.folder import DataFolder, FolderError, read_json, write_json

ANSWER_LIMIT_S = 90.0
"""Adding a server creates a database; a start under way comes first."""
_LOOK_S = 0.05
_ANSWER = ".answer.json"


@dataclass(frozen=True, slots=True)
class Request:
    verb: str
    """add, drain or stay; add-sca or remove-sca"""
    name: str = ""
    database: str = ""
    """Of an added server, where each has the operator's own."""


def ask(folder: DataFolder, request: Request, limit_s: float = ANSWER_LIMIT_S) -> dict[str, Any]:
    """The supervisor's answer. Raises what it refuses, and when none runs."""
    require_running(folder)
    folder.make()
    id_ = uuid.uuid4().hex
    asked, answered = folder.requests / f"{id_}.json", folder.requests / f"{id_}{_ANSWER}"
    deadline_s = time.monotonic() + limit_s
    try:
        write_json(asked, asdict(request))
        while (answer := read_json(answered)) is None:
            require_running(folder)
            if time.monotonic() > deadline_s:
                raise FolderError(
                    f"the supervisor of {folder.path} has not answered for {limit_s:g} s: see "
                    f"{folder.log('supervisor')}"
                )
            time.sleep(_LOOK_S)
    finally:
        asked.unlink(missing_ok=True)
        answered.unlink(missing_ok=True)
    if "error" in answer:
        raise FolderError(str(answer["error"]))
    return answer


def is_running(folder: DataFolder) -> bool:
    return folder.started("supervisor") is not None


def require_running(folder: DataFolder) -> None:
    if not is_running(folder):
        raise FolderError(
            f"no cluster runs in {folder.path}: start one with `utuple up`, or name its folder with "
            "--data. A server elsewhere is started by hand: python -m utuple.server --create --name NAME "
            "--listen HOST:PORT --database postgresql://… --managers HOST:PORT,…"
        )


# --- the supervisor's side


def waiting(folder: DataFolder) -> list[tuple[str, Request]]:
    """The oldest first."""
    paths = [path for path in folder.requests.glob("*.json") if not path.name.endswith(_ANSWER)]
    found = []
    for path in sorted(paths, key=_written):
        noted = read_json(path)
        if noted is not None:
            found.append((path.stem, _request(noted)))
    return found


def answer(folder: DataFolder, id_: str, said: dict[str, Any]) -> None:
    (folder.requests / f"{id_}.json").unlink(missing_ok=True)
    write_json(folder.requests / f"{id_}{_ANSWER}", said)


def forget_all(folder: DataFolder) -> None:
    """What was asked of an earlier supervisor: whoever asked has given up."""
    for path in folder.requests.glob("*.json*"):
        path.unlink(missing_ok=True)


def _request(noted: dict[str, Any]) -> Request:
    said = {name: str(noted.get(name, "")) for name in ("verb", "name", "database")}
    return Request(**said)


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
