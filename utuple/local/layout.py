"""Which programs a local cluster has, where each listens and how it is started. Pure.

port + 0, 1, 2 …     assignment managers   manager-1, manager-2, manager-3 …
port + 11, 12, 13 …  uTupleServers         server-1, server-2, server-3 …
port + 21, 23, 24 …  sCA servers           sca-1, sca-2, sca-3 …
port + 22            load monitor          monitor-1
a port of its own    MQTT door             mqtt-1, if asked for
port + 80, or free   HTTP door             http-1, unless told otherwise

Servers are added and drained while the cluster lives. A name is used once: what a drained server left in its
database is never taken for a new one's. sCA servers come and go as well; they keep nothing, so their names are used again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from utuple.errors import InvalidInput

HOST = "127.0.0.1"
DEFAULT_PORT = 7400
DEFAULT_SERVERS = 3
DEFAULT_MANAGERS = 3
MAX_SERVERS = 10
"""Their ports lie between port + 11 and port + 20; one machine has no use for more."""
MAX_MANAGERS = 11
MAX_SCAS = 6
_SERVER_OFFSET = 11
_SCA_OFFSET = 21
_MONITOR_OFFSET = 22
HTTP_OFFSET = 80
_HIGHEST_PORT = 65_535
_SERVER_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SERVER_NAME_MAX = 40
_NUMBERED = re.compile(r"server-([0-9]+)")


class Role(Enum):
    """In the order of starting; stopping goes the other way."""

    MANAGER = "manager"
    SERVER = "server"
    SCA = "sca"
    MONITOR = "monitor"
    MQTT = "mqtt"
    HTTP = "http"


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    role: Role
    port: int

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"


@dataclass(frozen=True, slots=True)
class Added:
    """A server that came after the cluster was made."""

    name: str
    slot: int
    """Its port is this far above that of server-1."""


@dataclass(frozen=True, slots=True)
class Layout:
    servers: int = DEFAULT_SERVERS
    """Those the cluster was made with."""
    managers: int = DEFAULT_MANAGERS
    port: int = DEFAULT_PORT
    added: tuple[Added, ...] = ()
    drained: tuple[str, ...] = ()
    """Servers that have left, from either of the above."""
    monitor: bool = True
    scas: tuple[int, ...] = (1,)
    """The numbers of the sCA servers. Without one no device can be commanded: only for a harness that commands none."""
    mqtt: int = 0
    """The port of an MQTT door; 0: there is none."""
    http: int = 0
    """The port of an HTTP door; 0: there is none."""

    def __post_init__(self) -> None:
        _check("--servers", self.servers, 1, MAX_SERVERS)
        _check("--managers", self.managers, 1, MAX_MANAGERS)
        _check("--port", self.port, 1, _HIGHEST_PORT - _SCA_OFFSET - MAX_SCAS)
        for number in self.scas:
            _check("--scas", number, 1, MAX_SCAS)
        _check("--mqtt", self.mqtt, 0, _HIGHEST_PORT)
        _check("--http", self.http, 0, _HIGHEST_PORT)

    @property
    def programs(self) -> list[Program]:
        managers = [
            Program(f"manager-{n + 1}", Role.MANAGER, self.port + n) for n in range(self.managers)
        ]
        servers = [
            Program(server.name, Role.SERVER, self.port + _SERVER_OFFSET + server.slot)
            for server in self._present
        ]
        scas = [
            Program(f"sca-{n}", Role.SCA, self.port + _SCA_OFFSET + (n if n > 1 else 0))
            for n in self.scas
        ]
        monitors = [Program("monitor-1", Role.MONITOR, self.port + _MONITOR_OFFSET)]
        return [
            *managers,
            *servers,
            *scas,
            *(monitors if self.monitor else []),
            *([Program("mqtt-1", Role.MQTT, self.mqtt)] if self.mqtt else []),
            *([Program("http-1", Role.HTTP, self.http)] if self.http else []),
        ]

    @property
    def without_doors(self) -> Layout:
        return replace(self, mqtt=0, http=0)

    def of_role(self, role: Role) -> list[Program]:
        return [program for program in self.programs if program.role is role]

    def program(self, name: str) -> Program | None:
        return next((program for program in self.programs if program.name == name), None)

    @property
    def manager_addresses(self) -> list[str]:
        return [manager.address for manager in self.of_role(Role.MANAGER)]

    @property
    def server_names(self) -> list[str]:
        """Those it was made with, then those that were added."""
        return [server.name for server in self._present]

    # --- servers come and go

    def with_server(self, name: str | None = None) -> Layout:
        """One more, at the first free port; the last of `server_names`."""
        taken = {server.slot for server in self._present}
        slot = next((slot for slot in range(MAX_SERVERS) if slot not in taken), None)
        if slot is None:
            raise InvalidInput(
                "servers", len(taken), f"a local cluster has at most {MAX_SERVERS}; drain one first"
            )
        name = self._next_name if name is None else self._checked(name)
        return replace(self, added=(*self.added, Added(name, slot)))

    def without_server(self, name: str) -> Layout:
        if name not in self.server_names:
            raise InvalidInput("server", name, f"must be one of {', '.join(self.server_names)}")
        return replace(self, drained=(*self.drained, name))

    # --- sCA servers come and go

    @property
    def sca_names(self) -> list[str]:
        return [sca.name for sca in self.of_role(Role.SCA)]

    def with_sca(self) -> Layout:
        """One more, with the first free number; the last of `sca_names`."""
        free = [number for number in range(1, MAX_SCAS + 1) if number not in self.scas]
        if not free:
            rule = f"a local cluster has at most {MAX_SCAS}; remove one first"
            raise InvalidInput("scas", len(self.scas), rule)
        return replace(self, scas=(*self.scas, free[0]))

    def without_sca(self, name: str) -> Layout:
        if name not in self.sca_names:
            raise InvalidInput("sca", name, f"must be one of {', '.join(self.sca_names)}")
        if len(self.scas) == 1:
            rule = (
                "is the last sCA server: without one no device can be commanded; add another first"
            )
            raise InvalidInput("sca", name, rule)
        return replace(self, scas=tuple(n for n in self.scas if f"sca-{n}" != name))

    @property
    def _all(self) -> list[Added]:
        """Every server there ever was."""
        founding = (Added(f"server-{slot + 1}", slot) for slot in range(self.servers))
        return [*founding, *self.added]

    @property
    def _present(self) -> list[Added]:
        return [server for server in self._all if server.name not in self.drained]

    @property
    def _next_name(self) -> str:
        numbers = (_NUMBERED.fullmatch(server.name) for server in self._all)
        return f"server-{max(int(number[1]) for number in numbers if number) + 1}"

    def _checked(self, name: str) -> str:
        if not _SERVER_NAME.fullmatch(name) or len(name) > _SERVER_NAME_MAX:
            rule = (
                f"must be a-z, 0-9 and -, such as server-9, at most {_SERVER_NAME_MAX} characters"
            )
            raise InvalidInput("--name", name, rule)
        if name in self.drained:
            raise InvalidInput("--name", name, "was drained; choose a name that is new here")
        others = {program.name for program in self.programs} | _RESERVED
        if name in others:
            raise InvalidInput("--name", name, "is taken; choose a name that is new here")
        return name


_RESERVED = frozenset({"supervisor", "state", "postgres", "monitor-1", "mqtt-1", "http-1"})
"""Names of other things in the data folder."""


def _check(option: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(option, value, f"must lie between {least} and {most}")


def database_of(server: str) -> str:
    """server-1 keeps its uTuples in utuple_server_1 of the embedded PostgreSQL."""
    return f"utuple_{server.replace('-', '_')}"


SERVICE_US = "service_us"
"""The one knob that is the servers', not the monitor's: artificial work per uTuple, so that a small machine can
show servers that are overloaded. `utuple up` refuses it; the demo says that it uses it."""

DOORS = (Role.MQTT, Role.HTTP)

_MODULES = {
    Role.MANAGER: "assignment_manager",
    Role.SERVER: "utuple.server",
    Role.SCA: "sca_server",
    Role.MONITOR: "load_monitor",
    Role.MQTT: "utuple.doors.mqtt",
    Role.HTTP: "utuple.doors.http",
}

DATABASE_WAIT_S = 5.0
"""A server ends, with the reason, when its PostgreSQL does not come within this. It is started again, and after some such
deaths `utuple up` shows the reason to the person who waits."""


def command_of(
    program: Program,
    layout: Layout,
    *,
    python: str,
    database: str = "",
    unsafe: bool = False,
    log: str = "",
    policy: tuple[str, ...] = (),
    telemetry: tuple[str, float] = ("", 0.0),
    elastic: tuple[str, str] = ("", ""),
    data: str = "",
    credentials: str = "",
    capacity_bytes: int | None = None,
    limits: Mapping[str, str] | None = None,
) -> list[str]:
    """The command line that starts this program. `database` is for servers; it is left out when its
    URL may hold a password, which goes by the environment instead (UTUPLE_DATABASE). `policy` is for
    the monitor, NAME=VALUE each, but for `SERVICE_US`, and so is `telemetry`: the folder of its samples, and
    seconds between them; and `elastic`: elastic.toml, and the cluster's folder. `data`, that folder, is for the HTTP
    door, which can ask the supervisor. `capacity_bytes` is for a server; None: its own default. `limits` are
    for those whose role is in front of their names."""
    # -P: the folder the user happens to stand in must not shadow our modules.
    command = [python, "-P", "-m", _MODULES[program.role]]
    command += ["--name", program.name] if program.role not in DOORS else []
    command += ["--listen", program.address]
    command += ["--log", log] if log else []
    command += ["--credentials", credentials] if credentials else []
    for name, value in (limits or {}).items():
        of, _, knob = name.partition(".")
        command += [f"--{knob.replace('_', '-')}", value] if of == program.role.value else []
    managers = layout.manager_addresses
    if program.role in DOORS:
        folder_of_it = ["--data", data] if program.role is Role.HTTP and data else []
        return [*command, "--at", ",".join(managers), *folder_of_it]
    if program.role is Role.MANAGER:
        peers = [address for address in managers if address != program.address]
        return command + (["--peers", ",".join(peers)] if peers else [])
    if program.role is Role.SERVER and database:
        command += ["--database", database]
    if program.role is Role.SERVER:
        command += ["--database-wait-s", f"{DATABASE_WAIT_S:g}"]
        command += ["--capacity-bytes", str(capacity_bytes)] if capacity_bytes else []
    command += ["--managers", ",".join(managers)]
    for name, _, value in (knob.partition("=") for knob in policy):
        if program.role is (Role.SERVER if name == SERVICE_US else Role.MONITOR):
            command += [f"--{name.replace('_', '-')}", value]
    folder, every_s = telemetry
    if program.role is Role.MONITOR and folder:
        command += ["--telemetry", folder, "--telemetry-every", str(every_s)]
    if program.role is Role.MONITOR and all(elastic):
        command += ["--elastic", elastic[0], "--data", elastic[1]]
    return command + (["--unsafe"] if unsafe and program.role is Role.SERVER else [])


CREATE = "--create"
"""Of a server that is started for the first time: it makes its store."""
