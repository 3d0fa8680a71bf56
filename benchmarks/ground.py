"""A cluster to measure: one assignment manager, some uTupleServers, their PostgreSQL; no monitor, so that
nothing moves but by our order. On loopback, in one folder, and gone when it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from benchmarks.benchmark import BenchFailed, Say
from benchmarks.machine import family_cpu_s, process_cpu_s
from utuple.admin import transport
from utuple.cluster.line import Line, first_table
from utuple.cluster.move import Move, MoveKind
from utuple.local.database import Database
from utuple.local.keeper import until
from utuple.local.running import Cluster, Extras, Prepare
from utuple.local.temporary import cluster
from utuple.model.key import key_of
from utuple.model.utuple import Family
from utuple.runtime.clock import monotonic_s
from utuple.runtime.postgresql.config import PostgresConfig
from utuple.server.matching.compiling import COMPILED, NO_COMPILER
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire

_COMPILED_LIMIT_S = 120.0
_LOOK_AGAIN_S = 0.25
"""While something is measured: each look costs a connection."""
POSTGRES = PostgresConfig(max_connections=150, shared_buffers_mb=128)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a benchmark wants."""

    service_us: Sequence[float]
    """One entry a server: its artificial work per uTuple."""
    own_postgres: bool = False
    """A PostgreSQL for each server, as in production; else one with a database for each."""
    secure: bool = False
    """With TLS and grants."""
    scas: int = 0
    """sCA servers."""
    sca_service_us: float = 0.0
    """Their artificial work per command."""
    prepare: Prepare | None = None
    """Done with the servers' databases, by server, before the servers start."""
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """More of a program's command line, by its name."""


@asynccontextmanager
async def open_ground(place: Path, plan: Plan, say: Say) -> AsyncIterator[Ground]:
    servers = [f"server-{number}" for number in range(1, len(plan.service_us) + 1)]
    say(f"starting {len(servers)} servers")
    works_us = dict(zip(servers, plan.service_us, strict=True))
    if plan.sca_service_us:
        works_us |= {f"sca-{n + 1}": plan.sca_service_us for n in range(plan.scas)}
    options = {name: ["--service-us", str(work_us)] for name, work_us in works_us.items()}
    for name, more in plan.options.items():
        options.setdefault(name, []).extend(more)
    extras = Extras(
        options=options,
        own_postgres=plan.own_postgres,
        postgres=POSTGRES,
        prepare=plan.prepare,
    )
    async with cluster(
        len(servers),
        scas=plan.scas,
        monitor=False,
        secure=plan.secure,
        extras=extras,
        place=place,
    ) as running:
        yield Ground(running)


class Ground:
    """A cluster that runs, and what is measured and ordered there."""

    def __init__(self, running: Cluster) -> None:
        self.cluster = running

    @property
    def managers(self) -> list[str]:
        return self.cluster.managers

    @property
    def servers(self) -> list[str]:
        return self.cluster.servers

    def address_of(self, name: str) -> str:
        return self.cluster.address_of(name)

    def database_of(self, name: str) -> str:
        """The address of this server's database."""
        return self.cluster.dsn_of(name)

    def _check_alive(self) -> None:
        """A program that ended by itself is started again, but its figures are worth nothing."""
        for name in self.cluster.deaths:
            raise BenchFailed(self.cluster.last_words_of(name, "ended by itself"))

    def family_at(self, home: str, type_: str) -> Family:
        """A family whose key this server is home of, as long as nothing has moved; its type begins so."""
        lines = first_table(self.servers)
        section = next(line.section for line in lines if line.home == home)
        families = (Family("bench", f"{type_}-{number}") for number in count(1))
        return next(family for family in families if key_of(*family) in section)

    def pid_of(self, name: str) -> int:
        pid = self.cluster.programs[name].pid
        assert pid is not None, f"{name} does not run"
        return pid

    def cpu_s(self, name: str) -> float:
        """What this program has used of the processors so far; 0 where the system does not tell."""
        return process_cpu_s(self.pid_of(name))

    @property
    def postgres_cpu_s(self) -> float:
        """What PostgreSQL has used so far, with all its processes."""
        pids = [database.pid for database in self.cluster.databases.values()]
        return sum(family_cpu_s(pid) for pid in pids if pid is not None)

    # --- accidents -------------------------------------------------------------------------------

    async def kill(self, name: str, *, with_postgres: bool = False) -> None:
        """kill -9; with every PostgreSQL, if so wished. They are gone when this returns."""
        self.cluster.kill(name)
        for database in self.cluster.databases.values() if with_postgres else ():
            await _kill(database)

    async def start_again(self, name: str) -> None:
        for database in self.cluster.databases.values():
            await database.start()
        await self.cluster.revive(name)

    async def until_compiled(self, name: str) -> None:
        """It has more EFs than NumPy serves well, and has compiled its kernels for them."""
        give_up_s = monotonic_s() + _COMPILED_LIMIT_S
        while monotonic_s() < give_up_s:
            said = self.cluster.log(name).read_text(errors="replace")
            if any(phrase in said for phrase in (COMPILED, NO_COMPILER)):
                return
            await asyncio.sleep(_LOOK_AGAIN_S)
        raise BenchFailed(f"{name} has not compiled its kernels after {_COMPILED_LIMIT_S:g} s")

    # --- moves -----------------------------------------------------------------------------------

    async def line_of(self, family: Family) -> Line:
        """As the manager has it, which costs the servers nothing."""
        return await self._line_at(key_of(*family))

    async def _line_at(self, key: int) -> Line:
        self._check_alive()
        answer = await transport.table(self.managers[0])
        for line in map(line_from_wire, answer.lines if answer is not None else ()):
            if key in line.section:
                return line
        raise BenchFailed("the assignment manager does not know the line")

    async def order_help(self, line: Line, helper: str) -> None:
        """To the home; it is under way when this returns."""
        move = Move(
            MoveKind.HELP_PROCESSING, line.section, line.epoch, line.home, helper, why="benchmark"
        )
        await self.order(move)

    async def order(self, move: Move) -> None:
        """To the home of its section; it is under way when this returns."""
        line = await self._line_at(move.section.start)
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


async def _kill(database: Database) -> None:
    database.kill()
    await until(lambda: database.pid is None)
