"""The virtual cluster: processes with lives, crashes and restarts, on one network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any

from assignment_manager.config import Config as ManagerConfig
from sca_server.config import Config as ScaConfig
from tests.virtual.programs.sca import ScaProgram
from tests.virtual.programs.servers import ServerProgram, address_of, run_manager
from tests.virtual.programs.trust import trust_of
from tests.virtual.world.disk import Disk
from tests.virtual.world.loop import DriftingClock, Life
from tests.virtual.world.network import MAX_MESSAGE_BYTES, Network
from tests.virtual.world.world import World
from utuple.cluster.line import Line, ServerInfo
from utuple.server.config import ServerConfig
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, server_to_wire

MOST_SCAS = 3
"""sCA servers, one to three of them at a time."""

FARTHEST_S = 75.0
"""No clock is ever further from true time than this: more than an unnamed reader outlives its connection."""

_BACK_S = 5.0
"""From the notice to the next try that succeeds."""
_RATE = 0.0005
"""Clocks are up to half a per mille too fast or too slow."""


@dataclass(eq=False)
class Process:
    name: str
    begin: Callable[[Life], Coroutine[Any, Any, None]]
    clock: DriftingClock
    life: Life | None = None
    lives: list[Life] = field(default_factory=list)
    disk: Disk | None = None
    program: ServerProgram | None = None
    sca: ScaProgram | None = None
    wanted: bool = True
    """To be restarted when it has died."""

    @property
    def is_up(self) -> bool:
        return self.life is not None and self.life.is_alive


@dataclass(frozen=True)
class Shape:
    """How large it is, and who serves what at first."""

    servers: tuple[str, ...]
    lines: tuple[Line, ...]
    managers: int = 2
    scas: int = 1
    """At first; others may come."""


class Cluster:
    def __init__(self, world: World, shape: Shape) -> None:
        self.world = world
        self.network = Network(world)
        self.trust = self.network.trust = trust_of(world)
        if self.trust is not None:
            self.trust.cluster = self
        self.processes: dict[str, Process] = {}
        self.managers = [f"manager-{number}" for number in range(1, shape.managers + 1)]
        self.servers = list(shape.servers)
        self.first_table = list(shape.lines)
        self.scas = [f"sca-{number}" for number in range(1, MOST_SCAS + 1)]
        self.manager_addresses = tuple(map(address_of, self.managers))
        self._dice = world.dice("cluster")
        self.when_died: list[Callable[[Process, Life], None]] = []
        for name in self.managers:
            self.add(name, self._manager)
        for number, name in enumerate(self.scas):
            self.add(name, self._sca).wanted = number < shape.scas
        for name in self.servers:
            self.add(name, self._server).disk = Disk(world, name)

    # --- processes -----------------------------------------------------------------------------------

    def add(self, name: str, begin: Callable[[Life], Coroutine[Any, Any, None]]) -> Process:
        rate = self._dice.uniform(-_RATE, _RATE)
        clock = DriftingClock(self.world.loop, rate, self._dice.uniform(-1.0, 1.0))
        process = self.processes[name] = Process(name, begin, clock)
        return process

    def start(self, name: str) -> None:
        process = self.processes[name]
        if process.is_up:
            return
        life = process.life = Life(name, len(process.lives) + 1, process.clock)
        process.lives.append(life)
        self.world.trace(life, "starts")
        task = self.world.loop.start(life, process.begin(life))
        task.add_done_callback(lambda done: self._ended(process, life, done))

    def _ended(self, process: Process, life: Life, done: Any) -> None:
        """A program that ends by itself has a bug; its supervisor starts it again."""
        if not life.is_alive:
            return
        error = None if done.cancelled() else done.exception()
        self.world.bug(f"{life} ended by itself", error)
        self.world.loop.later(0.0, self.crash, process.name, 1.0)

    def crash(self, name: str, back_after_s: float | None = None) -> bool:
        """kill -9; started again after so long, if it is wanted."""
        process = self.processes[name]
        if not process.is_up:
            return False
        assert process.life is not None
        life = process.life
        self.world.trace(life, "dies")
        life.end()
        if process.disk is not None:
            process.disk.server_died()
        self.network.died(life)
        for tell in self.when_died:
            tell(process, life)
        if back_after_s is not None:
            self.world.loop.later(back_after_s, self.start_if_wanted, name)
        return True

    def start_if_wanted(self, name: str) -> None:
        if self.processes[name].wanted:
            self.start(name)

    def stop(self, name: str, for_s: float) -> bool:
        """SIGSTOP, and SIGCONT after so long."""
        life = self.processes[name].life
        if life is None or not life.is_running:
            return False
        self.world.trace(life, f"is stopped for {for_s:.1f} s")
        self.world.loop.stop_life(life)
        self.world.loop.later(for_s, self.world.loop.continue_life, life)
        return True

    # --- sCA servers -----------------------------------------------------------------------------------

    @property
    def serving_scas(self) -> list[str]:
        """Those that are meant to be there."""
        return [name for name in self.scas if self.processes[name].wanted]

    def join_sca(self, name: str) -> bool:
        process = self.processes[name]
        if process.wanted or process.is_up:
            return False
        process.wanted = True
        self.start(name)
        return True

    def leave_sca(self, name: str) -> bool:
        """In order: its devices go to the others, and then it ends. The last one stays."""
        process = self.processes[name]
        life, program = process.life, process.sca
        if not process.wanted or not process.is_up or self.serving_scas == [name]:
            return False
        assert life is not None and program is not None
        process.wanted = False
        self.world.trace(life, "leaves")

        async def leave() -> None:
            await program.leave()
            self.world.loop.later(0.0, self._gone, process, life)

        self.world.loop.start(life, leave())
        return True

    def _gone(self, process: Process, life: Life) -> None:
        if process.life is life:
            self.crash(process.name)

    async def at_rest(self) -> None:
        """Streams that broke are known to have broken, by a keepalive if by nothing else, and are there again."""
        await asyncio.sleep(max(0.0, self.network.noticed_s + _BACK_S - self.world.now_s))

    def crash_database(self, name: str, for_s: float) -> bool:
        disk = self.processes[name].disk
        if disk is None or not disk.is_up:
            return False
        self.world.trace(name, f"its database is away for {for_s:.1f} s")
        disk.crash()
        self.world.loop.later(for_s, disk.restart)
        return True

    def engine(self, name: str) -> Any:
        """Of a server that is up, for observers only."""
        process = self.processes[name]
        return process.program.engine if process.is_up and process.program else None

    def line_of(self, key: int) -> Line:
        """The newest any server that is up has; for observers only."""
        engines = filter(None, map(self.engine, self.servers))
        lines = [line for engine in engines for line in engine.writer.lines.all]
        newest: Line = max(
            (one for one in lines if key in one.section), key=lambda line: line.epoch
        )
        return newest

    def epoch_of(self, key: int) -> int:
        """The newest any server has stored; for observers only."""
        disks = (self.processes[name].disk for name in self.servers)
        lines = (line for disk in disks if disk is not None for line in disk.lines)
        return max((line.epoch for line in lines if key in line.section), default=0)

    def is_moving(self, key: int) -> bool:
        """A move of its section is under way at a server that is up; for observers only."""
        engines = map(self.engine, self.servers)
        return any(
            key in record.move.section
            for engine in engines
            if engine is not None
            for record in engine.writer.moves.home.undone
        )

    def bury(self) -> None:
        for process in self.processes.values():
            for life in process.lives:
                life.end()

    # --- programs ------------------------------------------------------------------------------------

    async def _manager(self, life: Life) -> None:
        config = ManagerConfig(
            life.name,
            address_of(life.name),
            seeds=self.manager_addresses,
            tokens=8,
            gossip_s=2.0,
            suspect_s=8.0,
            dead_s=16.0,
        )
        await run_manager(self.network, config, self._dice_of(life))

    async def _sca(self, life: Life) -> None:
        config = ScaConfig(
            life.name,
            address_of(life.name),
            self.manager_addresses,
            table_every_s=5.0,
            first_retry_s=0.5,
            longest_retry_s=4.0,
            upkeep_every_s=5.0,
            meet_every_s=1.0,
            meet_limit_s=2.0,
            silent_s=3.0,
            settle_s=5.0,
            agree_s=2.0,
            settle_pause_s=1.0,
            settle_most_s=15.0,
            leave_s=4.0,
        )
        program = self.processes[life.name].sca = ScaProgram(self.network, config)
        await program.run()

    async def _server(self, life: Life) -> None:
        process = self.processes[life.name]
        assert process.disk is not None
        config = ServerConfig(
            life.name,
            address_of(life.name),
            "memory",
            self.manager_addresses,
            ahead_rows=1,
            teach_portion_bytes=MAX_MESSAGE_BYTES // 2,
            max_window=40,
            max_stream_rows=50,
            together_least=2,
            max_family_commands=16,
            receipt_portion_bytes=150,
            tick_s=4.0,
            move_limit_s=8.0,
            other_s=3.0,
            stats_s=10.0,
        )
        process.program = ServerProgram(self.network, process.disk, config, self._dice_of(life))
        await process.program.run()

    def _dice_of(self, life: Life) -> Random:
        return self.world.dice(str(life))

    # --- the first table -----------------------------------------------------------------------------

    async def adopt(self) -> None:
        """Written at the homes, once (decision 30)."""
        infos = [server_to_wire(ServerInfo(name, address_of(name))) for name in self.servers]
        lines = [line_to_wire(line) for line in self.first_table]
        request = pb.AdoptRequest(lines=lines, servers=infos)
        for name in {member.name: None for line in self.first_table for member in line.members}:
            await self.network.call(address_of(name), "adopt", request, 5.0)
