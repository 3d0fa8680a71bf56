"""Several uTupleServers in one process, on in-memory stores: real engines that call each other directly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.move import Move
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import OutcomeUnknown, Unavailable
from utuple.server.calls.handlers import ServerCalls
from utuple.server.config import ServerConfig
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb
from utuple.wire.moves import move_to_wire

T = TypeVar("T")

CONFIG = ServerConfig(
    "a",
    "127.0.0.1:0",
    "postgresql://nowhere",
    ("127.0.0.1:1",),
    tell_again_s=0.02,
    move_limit_s=5.0,
    other_s=1.0,
)


class Wires:
    """The seam between servers. `down` are unreachable; of `deaf`, answers are lost; `seen` is what was
    called."""

    def __init__(self) -> None:
        self.calls: dict[str, ServerCalls] = {}
        self.down: set[str] = set()
        self.deaf: set[str] = set()
        self.seen: list[tuple[str, str]] = []
        self.before: dict[str, asyncio.Event] = {}
        """Calls of this name wait for the event."""

    async def _call(self, address: str, name: str, work: Callable[[], Awaitable[T]]) -> T:
        self.seen.append((address, name))
        if name in self.before:
            await self.before[name].wait()
        if address in self.down or address not in self.calls:
            raise Unavailable(f"nothing listens at {address}")
        answer = await work()
        if address in self.deaf:
            raise OutcomeUnknown(f"{address} did not answer")
        return answer

    async def learn(
        self, address: str, request: pb.LearnRequest, timeout_s: float
    ) -> pb.LearnAnswer:
        return await self._call(address, "learn", lambda: self._at(address).learn(request))

    async def ready(
        self, address: str, request: pb.ReadyRequest, timeout_s: float
    ) -> pb.ReadyAnswer:
        return await self._call(address, "ready", lambda: self._at(address).ready(request))

    async def hear(self, address: str, request: pb.HearRequest, timeout_s: float) -> pb.HearAnswer:
        return await self._call(address, "hear", lambda: self._at(address).hear(request))

    async def forget(
        self, address: str, request: pb.ForgetRequest, timeout_s: float
    ) -> pb.ForgetAnswer:
        return await self._call(address, "forget", lambda: self._at(address).forget(request))

    async def vacant(
        self, address: str, request: pb.VacantRequest, timeout_s: float
    ) -> pb.VacantAnswer:
        return await self._call(address, "vacant", lambda: self._at(address).vacant(request))

    async def ship(self, address: str, request: pb.ShipRequest, timeout_s: float) -> pb.ShipAnswer:
        return await self._call(address, "ship", lambda: self._at(address).ship(request))

    async def take(self, address: str, request: pb.TakeRequest, timeout_s: float) -> pb.TakeAnswer:
        return await self._call(address, "take", lambda: self._at(address).take(request))

    def _at(self, address: str) -> ServerCalls:
        return self.calls[address]


@dataclass
class Servers:
    """`await servers.start("a", line)`; a server's address is its name."""

    wires: Wires = field(default_factory=Wires)
    engines: dict[str, Engine] = field(default_factory=dict)
    stores: dict[str, MemoryStore] = field(default_factory=dict)
    heard: dict[str, ServerInfo] = field(default_factory=dict)

    async def start(self, name: str, *lines: Line) -> Engine:
        store = self.stores.setdefault(name, MemoryStore())
        engine = Engine(replace(CONFIG, name=name), store, self.wires)
        self.heard[name] = ServerInfo(name, name)
        engine.heard = self.heard
        await engine.start()
        if lines:
            await engine.register(Request(adopt=lines))
        self.engines[name] = engine
        self.wires.calls[name] = ServerCalls(engine, name)
        return engine

    async def crash(self, name: str) -> None:
        """Gone at once, with what it had in memory; its store stays."""
        engine = self.engines.pop(name)
        del self.wires.calls[name]
        tasks = [*engine.loops, *engine.delivering.tasks, *engine.mover.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def order(self, home: str, move: Move) -> bytes:
        answer = await self.wires.calls[home].move(move_to_wire(move))
        assert answer.accepted, answer.reason
        return answer.id

    async def ended(self, home: str, move: bytes) -> MoveRecord:
        """The move's record once it is over."""
        return await self._once(home, move, lambda record: not record.is_undone)

    async def reached(self, home: str, move: bytes, step: MoveStep) -> MoveRecord:
        return await self._once(home, move, lambda record: record.step is step)

    async def _once(
        self, home: str, move: bytes, is_so: Callable[[MoveRecord], bool]
    ) -> MoveRecord:
        await _until(lambda: is_so(self.record(home, move)), f"{move.hex()} at {home}")
        return self.record(home, move)

    async def called(self, address: str, name: str) -> None:
        """Until someone has made this call."""
        await _until(lambda: (address, name) in self.wires.seen, f"{name} at {address}")

    async def drained(self, name: str) -> None:
        """Until the server has deleted what was brought away."""
        moving = self.engines[name].writer.moving
        await _until(lambda: bool(moving.left) and not moving.shipments, f"{name} drained")

    def record(self, home: str, move: bytes) -> MoveRecord:
        return self.engines[home].writer.moving.records[move]

    async def make(self, home: str, move: Move) -> MoveRecord:
        """Order a move and see it done."""
        record = await self.ended(home, await self.order(home, move))
        assert record.step is MoveStep.DONE, record
        return record

    async def stop(self) -> None:
        for engine in self.engines.values():
            await engine.stop()


async def _until(is_so: Callable[[], bool], what: str) -> None:
    for _ in range(5_000):
        if is_so():
            return
        await asyncio.sleep(0.002)
    raise AssertionError(f"not so after 10 s: {what}")
