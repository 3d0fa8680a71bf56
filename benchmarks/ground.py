"""A cluster to measure: one assignment manager, some uTupleServers, their PostgreSQL; no monitor, so that
nothing moves but by our order. On loopback, in one folder, and gone when it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from subprocess import Popen

from benchmarks.benchmark import BenchFailed, Say
from benchmarks.machine import family_cpu_s, process_cpu_s
from utuple.admin import transport
from utuple.cluster.line import Line, first_table
from utuple.cluster.move import Move, MoveKind
from utuple.local import readiness
from utuple.local.folder import DataFolder
from utuple.local.layout import CREATE, Layout, Program, Role, command_of, database_of
from utuple.local.ports import free_base_port
from utuple.local.processes import Process, end, spawn, start_of, strays
from utuple.model.key import key_of
from utuple.model.utuple import Family
from utuple.runtime.clock import monotonic_s
from utuple.runtime.postgresql.embedded import EmbeddedPostgres, PostgresConfig
from utuple.server.matching.compiling import COMPILED, NO_COMPILER
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire

_FIRST_PORT, _LAST_PORT, _STEP = 10_000, 32_000, 30
"""Below the ports that systems give away by themselves."""
_READY_LIMIT_S = 120.0
_ASK_AGAIN_S = 0.1
_LOOK_AGAIN_S = 0.25
"""While something is measured: each look costs a connection."""
_LOG_TAIL = 5
POSTGRES = PostgresConfig(max_connections=150, shared_buffers_mb=128)


Prepare = Callable[[Mapping[str, str]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a benchmark wants."""

    service_us: Sequence[float]
    """One entry a server: its artificial work per uTuple."""
    own_postgres: bool = False
    """A PostgreSQL for each server, as in production; else one with a database for each."""
    sca: bool = False
    """With an sCA server."""
    prepare: Prepare | None = None
    """Done with the servers' databases, by server, before the servers start."""


class Ground:
    def __init__(self, place: Path, plan: Plan, say: Say) -> None:
        self._folder = DataFolder(place)
        self._plan = plan
        self._say = say
        self._postgres: list[EmbeddedPostgres] = []
        self._databases: dict[str, str] = {}
        self._threads: list[asyncio.Task[object]] = []
        self._children: dict[str, tuple[Popen[bytes], Process]] = {}
        self._commands: dict[str, tuple[Program, list[str]]] = {}
        servers = len(plan.service_us)
        offsets = [program.port - Layout().port for program in Layout(servers, 1).programs]
        bases = list(range(_FIRST_PORT, _LAST_PORT, _STEP))
        Random(os.getpid()).shuffle(bases)  # two at once begin at different places
        self._layout = Layout(servers, 1, free_base_port(offsets, bases), monitor=False)

    @property
    def managers(self) -> list[str]:
        return self._layout.manager_addresses

    @property
    def servers(self) -> list[str]:
        return self._layout.server_names

    def address_of(self, name: str) -> str:
        program = self._layout.program(name)
        assert program is not None, name
        return program.address

    def database_of(self, name: str) -> str:
        """The address of this server's database."""
        return self._databases[name]

    # --- life ------------------------------------------------------------------------------------

    async def __aenter__(self) -> Ground:
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is left, whatever state it is in."""
        await asyncio.gather(*self._threads, return_exceptions=True)
        running = [process for _, process in self._children.values()]
        await asyncio.to_thread(end, running)
        for child, _process in self._children.values():
            child.poll()
        await asyncio.to_thread(end, strays(self._folder.path))
        for postgres in self._postgres:
            await asyncio.to_thread(postgres.stop)

    async def _start(self) -> None:
        self._folder.make()
        servers = self._layout.of_role(Role.SERVER)
        self._say(f"starting {len(servers)} servers")
        self._databases = await self._start_postgres([server.name for server in servers])
        if self._plan.prepare is not None:
            await self._plan.prepare(self._databases)
        for manager in self._layout.of_role(Role.MANAGER):
            self._spawn(manager, command_of(manager, self._layout, python=sys.executable))
        for server, service_us in zip(servers, self._plan.service_us, strict=True):
            command = command_of(
                server, self._layout, python=sys.executable, database=self._databases[server.name]
            )
            self._spawn(server, [*command, CREATE, "--service-us", str(service_us)])
        if self._plan.sca:
            for sca in self._layout.of_role(Role.SCA):
                self._spawn(sca, command_of(sca, self._layout, python=sys.executable))
        try:
            async with asyncio.timeout(_READY_LIMIT_S):
                await self._until_ready()
        except TimeoutError:
            raise BenchFailed(f"the cluster is not ready after {_READY_LIMIT_S:g} s") from None

    async def _start_postgres(self, names: Sequence[str]) -> dict[str, str]:
        """The address of each server's database."""
        own = self._plan.own_postgres
        groups = [[name] for name in names] if own else [list(names)]
        databases = {}
        for number, group in enumerate(groups, 1):
            postgres = EmbeddedPostgres(self._folder.path / f"postgres-{number}", POSTGRES)
            self._postgres.append(postgres)
            await self._in_thread(postgres.start)
            for name in group:
                await self._in_thread(partial(postgres.create_database, database_of(name)))
                databases[name] = postgres.dsn(database_of(name))
        return databases

    async def _in_thread(self, work: Callable[[], object]) -> None:
        """A thread cannot be interrupted: when we are, it is waited for before anything is stopped."""
        thread = asyncio.create_task(asyncio.to_thread(work))
        self._threads.append(thread)
        await asyncio.shield(thread)

    def _spawn(self, program: Program, command: list[str]) -> None:
        self._commands[program.name] = (program, command)
        child = spawn(command, self._folder.log(program.name), self._folder.path, {})
        self._children[program.name] = (child, Process(child.pid, start_of(child.pid) or ""))

    async def _until_ready(self) -> None:
        adopting = asyncio.create_task(readiness.give_first_table(self._layout))
        try:
            while not (adopting.done() and await self._is_whole()):
                self._check_alive()
                await asyncio.sleep(_ASK_AGAIN_S)
        finally:
            adopting.cancel()

    async def _is_whole(self) -> bool:
        answer = await transport.table(self.managers[0])
        return answer is not None and answer.whole

    def _check_alive(self) -> None:
        for name, (child, _) in self._children.items():
            if child.poll() is not None:
                lines = self._folder.log(name).read_text(errors="replace").splitlines()
                tail = "\n".join(lines[-_LOG_TAIL:])
                raise BenchFailed(f"{name} ended with exit code {child.returncode}:\n{tail}")

    def family_at(self, home: str, type_: str) -> Family:
        """A family whose key this server is home of, as long as nothing has moved; its type begins so."""
        lines = first_table(self.servers)
        section = next(line.section for line in lines if line.home == home)
        families = (Family("bench", f"{type_}-{number}") for number in count(1))
        return next(family for family in families if key_of(*family) in section)

    def pid_of(self, name: str) -> int:
        return self._children[name][0].pid

    def cpu_s(self, name: str) -> float:
        """What this program has used of the processors so far; 0 where the system does not tell."""
        return process_cpu_s(self.pid_of(name))

    @property
    def postgres_cpu_s(self) -> float:
        """What PostgreSQL has used so far, with all its processes."""
        pids = [postgres.pid for postgres in self._postgres]
        return sum(family_cpu_s(pid) for pid in pids if pid is not None)

    # --- accidents -------------------------------------------------------------------------------

    async def kill(self, name: str, *, with_postgres: bool = False) -> None:
        """kill -9; with every PostgreSQL, if so wished. They are gone when this returns."""
        child, _ = self._children.pop(name)
        child.kill()
        await asyncio.to_thread(child.wait)
        for postgres in self._postgres if with_postgres else ():
            await self._in_thread(partial(_kill_postgres, postgres))

    async def start_again(self, name: str) -> None:
        for postgres in self._postgres:
            if not postgres.is_running:
                await self._in_thread(postgres.start)
        self._spawn(*self._commands[name])

    async def until_compiled(self, name: str) -> None:
        """It has more EFs than NumPy serves well, and has compiled its kernels for them."""
        give_up_s = monotonic_s() + _READY_LIMIT_S
        while monotonic_s() < give_up_s:
            said = self._folder.log(name).read_text(errors="replace")
            if any(phrase in said for phrase in (COMPILED, NO_COMPILER)):
                return
            await asyncio.sleep(_LOOK_AGAIN_S)
        raise BenchFailed(f"{name} has not compiled its kernels after {_READY_LIMIT_S:g} s")

    # --- moves -----------------------------------------------------------------------------------

    async def line_of(self, family: Family) -> Line:
        """As the manager has it, which costs the servers nothing."""
        self._check_alive()
        answer = await transport.table(self.managers[0])
        key = key_of(*family)
        for line in map(line_from_wire, answer.lines if answer is not None else ()):
            if key in line.section:
                return line
        raise BenchFailed("the assignment manager does not know the line")

    async def order_help(self, line: Line, helper: str) -> None:
        """To the home; it is under way when this returns."""
        move = Move(
            MoveKind.HELP_PROCESSING, line.section, line.epoch, line.home, helper, why="benchmark"
        )
        answer = await transport.move(self.address_of(line.home), move)
        if not answer.accepted:
            raise BenchFailed(f"{line.home} does not make the move: {answer.reason}")

    async def until_newer(self, family: Family, line: Line, limit_s: float) -> Line:
        """The key's line, once the manager has heard of a newer one."""
        give_up_s = monotonic_s() + limit_s
        while monotonic_s() < give_up_s:
            newer = await self.line_of(family)
            if newer.epoch > line.epoch:
                return newer
            await asyncio.sleep(_LOOK_AGAIN_S)
        moves = await self.moves_at(line.home)
        said = ", ".join(f"{pb.MoveStep.Name(move.step)} {move.reason}" for move in moves)
        raise BenchFailed(f"no new line after {limit_s:g} s: {said or 'no move is recorded'}")

    async def said_between_servers(self) -> int:
        """Calls that any of the servers has had from another, so far."""
        asked = (transport.server_status(self.address_of(name)) for name in self.servers)
        heard = await asyncio.gather(*asked)
        if any(status is None for status in heard):
            raise BenchFailed("a server does not tell its status")
        return sum(status.from_servers for status in heard if status is not None)

    async def moves_at(self, home: str) -> list[pb.MoveRecord]:
        """Newest first. Asked sparingly: a server with many EFs needs a while to answer."""
        status = await transport.server_status(self.address_of(home), brief=True)
        return list(status.moves) if status is not None else []

    async def status_of(self, name: str) -> pb.ServerStatus:
        status = await transport.server_status(self.address_of(name), brief=True)
        if status is None:
            raise BenchFailed(f"{name} does not tell its status")
        return status

    async def pause_ms(self, name: str) -> float:
        """The longest in the last seconds in which this server could do nothing else."""
        return (await self.status_of(name)).longest_pause_us / 1000


def _kill_postgres(postgres: EmbeddedPostgres) -> None:
    while (pid := postgres.pid) is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        time.sleep(_ASK_AGAIN_S)
