"""Several uTupleServers in one process, on in-memory stores: real engines that call each other directly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from google.protobuf.message import Message

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.move import Move
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import OutcomeUnknown, Unavailable
from utuple.server.calls.handlers import ServerCalls
from utuple.server.config import ServerConfig
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.memory import MemoryStore
from utuple.wire.cluster import move_to_wire

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

    async def call(self, address: str, method: str, request: Message, timeout_s: float) -> Any:
        self.seen.append((address, method))
        if method in self.before:
            await self.before[method].wait()
        if address in self.down or address not in self.calls:
            raise Unavailable(f"nothing listens at {address}")
        answer = await getattr(self.calls[address], method)(request)
        if address in self.deaf:
            raise OutcomeUnknown(f"{address} did not answer")
        return answer


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
        tasks = [*engine.loops, *engine.delivering.tasks, *engine.move_driver.tasks]
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
        await until(lambda: is_so(self.record(home, move)), f"{move.hex()} at {home}")
        return self.record(home, move)

    async def called(self, address: str, name: str) -> None:
        """Until someone has made this call."""
        await until(lambda: (address, name) in self.wires.seen, f"{name} at {address}")

    async def drained(self, name: str) -> None:
        """Until the server has deleted what was brought away."""
        part = self.engines[name].writer.moves.participant
        await until(lambda: bool(part.left) and not part.shipments, f"{name} drained")

    def record(self, home: str, move: bytes) -> MoveRecord:
        return self.engines[home].writer.moves.home.records[move]

    async def make(self, home: str, move: Move) -> MoveRecord:
        """Order a move and see it done."""
        record = await self.ended(home, await self.order(home, move))
        assert record.step is MoveStep.DONE, record
        return record

    async def stop(self) -> None:
        for engine in self.engines.values():
            await engine.stop()


async def until(is_so: Callable[[], bool], what: str) -> None:
    for _ in range(5_000):
        if is_so():
            return
        await asyncio.sleep(0.002)
    raise AssertionError(f"not so after 10 s: {what}")
