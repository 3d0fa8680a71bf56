"""The data folder of a local cluster: what it is, what runs, what was said.

    cluster.json   format, layout, whether the first table was given out
    postgres/      the embedded PostgreSQL
    logs/NAME.log  what each program prints; supervisor.log when detached; NAME.log.1, .2 … what was before
                   (`utuple.runtime.log_file`); moves.jsonl: the moves that drained servers had recorded
    run/           while it runs: lock, supervisor.json, state.json, and NAME.json of each program
    elastic.toml   how servers come and go with the load, if they do; elastic.json: which machines there are, and who is on which
    requests/      what the supervisor is asked for while it runs, and its answers

The default is $UTUPLE_DATA, or utuple below $XDG_DATA_HOME, or ~/.local/share/utuple: one place,
whatever folder one stands in, so that `utuple down` finds what `utuple up` started.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from utuple.admin.moves import ShownMove
from utuple.errors import UTupleError
from utuple.local.layout import Added, Layout
from utuple.local.processes import Process
from utuple.local.trusting import Trust
from utuple.runtime.log_file import LogFile

FORMAT = 2
_OLDER_FORMATS = (1,)
"""Read as they are: what they lack has a default."""


class FolderError(UTupleError):
    """The data folder cannot be used so; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ClusterFile:
    layout: Layout
    databases: tuple[str, ...] = ()
    """One a server, in the order of the layout's names, when they are the operator's own; empty: the
    embedded PostgreSQL."""
    unsafe: bool = False
    """The operator accepts databases that may lose what was answered OK."""
    created: bool = False
    """Every server has the first table."""
    policy: tuple[str, ...] = ()
    """Knobs of the load monitor, NAME=VALUE each."""
    capacity: dict[str, int] = field(default_factory=dict)
    """What stores may grow to in bytes, by server or for every one (`capacity`)."""
    limits: dict[str, str] = field(default_factory=dict)
    """Of programs, by role and name: `server.share_efs` (`utuple/cli/limits.py`)."""
    telemetry: str = ""
    """Where the load monitor keeps its samples; empty: nowhere."""
    telemetry_every_s: float = 60.0
    elastic: bool = False
    """Servers come and go with the load, by the folder's elastic.toml."""
    new: tuple[str, ...] = ()
    """Servers that were added and have not served yet."""
    secure: bool = False
    """Everybody shows credentials, and does what he was granted."""
    leaving: tuple[str, ...] = ()
    """Servers to stop and forget as soon as they are in no line."""

    def is_new(self, server: str) -> bool:
        """It makes its store. Any other whose store is gone says so."""
        return not self.created or server in self.new


@dataclass(frozen=True, slots=True)
class Started:
    """What is written down of a program that was started."""

    process: Process
    command: list[str] = field(default_factory=list)


def default_folder() -> Path:
    if named := os.environ.get("UTUPLE_DATA"):
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "utuple"


class DataFolder:
    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self._run = self.path / "run"
        self._cluster = self.path / "cluster.json"

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def elastic(self) -> Path:
        return self.path / "elastic.toml"

    @property
    def requests(self) -> Path:
        return self.path / "requests"

    @property
    def trust(self) -> Trust:
        """Of a secured cluster."""
        return Trust(self.path)

    def log(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    def make(self) -> None:
        """Private: what is in it is the user's, and a database URL may hold a password."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for part in (self._run, self.path / "logs", self.requests):
                part.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise FolderError(
                f"cannot make the data folder {self.path}: {error.strerror}; choose another with --data"
            ) from None

    def set_aside_long_log(self, name: str) -> None:
        LogFile(self.log(name)).set_aside_if_long()

    # --- cluster.json

    def read_cluster(self) -> ClusterFile | None:
        noted = read_json(self._cluster)
        if noted is None:
            return None
        if noted.get("format") not in (FORMAT, *_OLDER_FORMATS):
            raise FolderError(
                f"{self.path} was written by another version of utuple (format "
                f"{noted.get('format')!r}, this version knows {FORMAT}): use that version, or "
                "choose another folder with --data"
            )
        try:
            layout = Layout(
                int(noted["servers"]),
                int(noted["managers"]),
                int(noted["port"]),
                tuple(Added(str(name), int(slot)) for name, slot in noted.get("added", ())),
                tuple(map(str, noted.get("drained", ()))),
                bool(noted.get("monitor", True)),
                scas=tuple(map(int, noted.get("scas", (1,) if noted.get("sca", True) else ()))),
                mqtt=int(noted.get("mqtt", 0)),
                http=int(noted.get("http", 0)),
            )
            return ClusterFile(
                layout,
                databases=tuple(noted.get("databases", ())),
                unsafe=bool(noted.get("unsafe", False)),
                secure=bool(noted.get("secure", False)),
                created=bool(noted["created"]),
                policy=tuple(map(str, noted.get("policy", ()))),
                capacity={name: int(size) for name, size in noted.get("capacity", {}).items()},
                limits={str(name): str(value) for name, value in noted.get("limits", {}).items()},
                telemetry=str(noted.get("telemetry", "")),
                telemetry_every_s=float(noted.get("telemetry_every_s", 60.0)),
                elastic=bool(noted.get("elastic", False)),
                leaving=tuple(map(str, noted.get("leaving", ()))),
                new=tuple(map(str, noted.get("new", ()))),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FolderError(
                f"{self._cluster} is damaged ({error}): restore it from a copy, or choose another "
                "folder with --data"
            ) from None

    def write_cluster(self, cluster: ClusterFile) -> None:
        noted = asdict(cluster)
        layout = noted.pop("layout")
        layout["added"] = [[server.name, server.slot] for server in cluster.layout.added]
        programs = {program.name: program.address for program in cluster.layout.programs}
        write_json(self._cluster, {"format": FORMAT, **layout, **noted, "programs": programs})

    # --- what drained servers leave behind

    def note_moves(self, moves: Iterable[ShownMove]) -> None:
        with (self.path / "logs" / "moves.jsonl").open("ab") as file:
            for move in moves:
                file.write(orjson.dumps(move) + b"\n")

    def noted_moves(self) -> list[ShownMove]:
        try:
            lines = (self.path / "logs" / "moves.jsonl").read_bytes().splitlines()
        except OSError:
            return []
        moves = []
        for line in lines:
            # A line cut short by a power failure, or by a version that notes more than we know.
            with suppress(orjson.JSONDecodeError, TypeError):
                moves.append(ShownMove(**orjson.loads(line)))
        return moves

    # --- run/

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held by the one supervisor of this folder as long as it lives."""
        with (self._run / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderError(
                    f"the cluster in {self.path} is running: see `utuple status`, or stop it first "
                    f"with `utuple down --data {self.path}`"
                ) from None
            yield

    def note_started(self, name: str, started: Started) -> None:
        process = started.process
        noted = {"pid": process.pid, "started": process.started, "command": started.command}
        write_json(self._run / f"{name}.json", noted)

    def started(self, name: str) -> Started | None:
        """What was written down, if that process still lives."""
        noted = read_json(self._run / f"{name}.json")
        if noted is None or "pid" not in noted:
            return None
        process = Process(int(noted["pid"]), str(noted.get("started")))
        return Started(process, list(noted.get("command", []))) if process.is_alive else None

    def all_started(self) -> dict[str, Started]:
        names = sorted(path.stem for path in self._run.glob("*.json"))
        found = {name: self.started(name) for name in names}
        return {name: started for name, started in found.items() if started is not None}

    def note_state(self, state: str, said: str) -> None:
        """How far the supervisor is: starting, ready, failed or stopping, and a word about it."""
        write_json(self._run / "state.json", {"state": state, "said": said})

    def state(self) -> tuple[str, str]:
        noted = read_json(self._run / "state.json") or {}
        return str(noted.get("state", "")), str(noted.get("said", ""))

    def forget_state(self) -> None:
        (self._run / "state.json").unlink(missing_ok=True)

    def forget_run(self, name: str | None = None) -> None:
        for path in [self._run / f"{name}.json"] if name else list(self._run.glob("*.json")):
            path.unlink(missing_ok=True)


def read_json(path: Path) -> dict[str, Any] | None:
    """A damaged file of run/ is as good as none; cluster.json then lacks its format."""
    try:
        noted = orjson.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except orjson.JSONDecodeError:
        return {}
    return noted if isinstance(noted, dict) else {}


def write_json(path: Path, noted: object) -> None:
    """Whole or not at all, whenever the power fails."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(orjson.dumps(noted, option=orjson.OPT_INDENT_2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
