"""Which programs a local cluster has, where each listens and how it is started. Pure.

port + 0, 1, 2 …     assignment managers   manager-1, manager-2, manager-3 …
port + 11, 12, 13 …  uTupleServers         server-1, server-2, server-3 …
port + 21            sCA server            sca-1
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from utuple.errors import InvalidInput

HOST = "127.0.0.1"
DEFAULT_PORT = 7400
DEFAULT_SERVERS = 3
DEFAULT_MANAGERS = 3
MAX_SERVERS = 10
"""Their ports lie between port + 11 and port + 20; one machine has no use for more."""
MAX_MANAGERS = 11
_SERVER_OFFSET = 11
_SCA_OFFSET = 21
_HIGHEST_PORT = 65_535


class Role(Enum):
    """In the order of starting; stopping goes the other way."""

    MANAGER = "manager"
    SERVER = "server"
    SCA = "sca"


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    role: Role
    port: int

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"


@dataclass(frozen=True, slots=True)
class Layout:
    servers: int = DEFAULT_SERVERS
    managers: int = DEFAULT_MANAGERS
    port: int = DEFAULT_PORT

    def __post_init__(self) -> None:
        _check("--servers", self.servers, 1, MAX_SERVERS)
        _check("--managers", self.managers, 1, MAX_MANAGERS)
        _check("--port", self.port, 1, _HIGHEST_PORT - _SCA_OFFSET)

    @property
    def programs(self) -> list[Program]:
        managers = [
            Program(f"manager-{n + 1}", Role.MANAGER, self.port + n) for n in range(self.managers)
        ]
        servers = [
            Program(f"server-{n + 1}", Role.SERVER, self.port + _SERVER_OFFSET + n)
            for n in range(self.servers)
        ]
        return [*managers, *servers, Program("sca-1", Role.SCA, self.port + _SCA_OFFSET)]

    def of_role(self, role: Role) -> list[Program]:
        return [program for program in self.programs if program.role is role]

    @property
    def manager_addresses(self) -> list[str]:
        return [manager.address for manager in self.of_role(Role.MANAGER)]

    @property
    def server_names(self) -> list[str]:
        return [server.name for server in self.of_role(Role.SERVER)]


def _check(option: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(option, value, f"must lie between {least} and {most}")


def database_of(server: str) -> str:
    """server-1 keeps its uTuples in utuple_server_1 of the embedded PostgreSQL."""
    return f"utuple_{server.replace('-', '_')}"


_MODULES = {
    Role.MANAGER: "assignment_manager",
    Role.SERVER: "utuple.server",
    Role.SCA: "sca_server",
}


def command_of(
    program: Program, layout: Layout, *, python: str, database: str = "", unsafe: bool = False
) -> list[str]:
    """The command line that starts this program. `database` is for servers; it is left out when its
    URL may hold a password, which goes by the environment instead (UTUPLE_DATABASE)."""
    # -P: the folder the user happens to stand in must not shadow our modules.
    command = [python, "-P", "-m", _MODULES[program.role], "--name", program.name]
    command += ["--listen", program.address]
    managers = layout.manager_addresses
    if program.role is Role.MANAGER:
        peers = [address for address in managers if address != program.address]
        return command + (["--peers", ",".join(peers)] if peers else [])
    if program.role is Role.SERVER and database:
        command += ["--database", database]
    command += ["--managers", ",".join(managers)]
    return command + (["--unsafe"] if unsafe and program.role is Role.SERVER else [])
