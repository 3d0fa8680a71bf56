"""The driver: takes each move this server is home of from its record to its end.

What may be done is decided in the writer's order (`home`); `preparing` brings a move to its commit and `announcing` tells
the others afterwards. Everything durable is in the records, so after a restart, or when the store was opened anew, each
undone move is taken up from its record: preparing begins again, announcing goes on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import UTupleError
from utuple.model.columns import MICROSECONDS
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.server.moving.announcing import Announcing
from utuple.server.moving.older import Older
from utuple.server.moving.preparing import Effort, Preparing
from utuple.server.moving.servers import TRANSIENT, GivenUp, OtherServers, ServerTransport
from utuple.server.moving.shipping import Shipping
from utuple.server.moving.steps import Abort, Begin, End
from utuple.server.ports import MovePort

_log = Log("utuple.server.moving.driver")


def _not_begun(move: str, error: BaseException, _again_s: float | None) -> None:
    """The caller has the error too, if it still waits."""
    _log.warning("move not begun", move=move, reason=error)


@dataclass(slots=True, eq=False)
class MoveDriver:
    port: MovePort
    transport: ServerTransport
    tasks: Tasks = field(default_factory=Tasks)
    shipping: Shipping = field(init=False)
    older: Older = field(init=False)
    _beginning: Tasks = field(default_factory=lambda: Tasks(_not_begun))
    _preparing: Preparing = field(init=False)
    _announcing: Announcing = field(init=False)
    _efforts: dict[bytes, Effort] = field(default_factory=dict)

    def __post_init__(self) -> None:
        others = OtherServers(self.port, self.transport)
        self.shipping = Shipping(self.port, others)
        self.older = Older(self.port, others)
        self._preparing = Preparing(self.port, others, self.shipping)
        self._announcing = Announcing(self.port, others, self.shipping)

    def take_over(self) -> None:
        """The store was opened (again): what was under way goes on from its records."""
        for task in self.tasks:
            task.cancel()
        for record in self.port.writer.moves.home.undone:
            self._spawn(record)
        self.shipping.take_over(self.tasks)
        self.tasks.keep(lambda: self.older.tend_forever(self._order_of_its_own), "older layouts")

    def settle(self) -> None:
        """Lines were heard of. By a committed drain what was shipped goes, and by a partitioned line EFs of others' shares."""
        self.shipping.settle(self.tasks)
        self.older.lines_changed.set()

    async def vacancy(self, line: Line) -> str:
        """Empty if this server holds nothing of the line, in which it is off; else why it cannot leave."""
        return await self._preparing.vacancy(line)

    async def order(self, id_: bytes, move: Move) -> str:
        """Record the move and set out, also if the caller does not wait for it: what is recorded is driven.
        Empty, or why it is not made."""
        return await asyncio.shield(self._beginning.start(self._begin(id_, move), id_.hex()))

    async def _order_of_its_own(self, move: Move) -> str:
        return await self.order(self.port.new_id(), move)

    async def _begin(self, id_: bytes, move: Move) -> str:
        if move.kind is MoveKind.PRUNE:
            try:
                move = replace(move, past=await self.older.left(move))
            except TRANSIENT as error:
                return str(error)
        outcome = await self.port.step(Begin(id_, move))
        record = self.port.writer.moves.home.records.get(id_)
        if not outcome.done or record is None:
            return outcome.reason
        _log.info("move begun", move=id_.hex(), order=move, why=move.why)
        if record.step is MoveStep.LEARNING and not self._is_driven(id_):
            self._spawn(record)
        return ""

    def _is_driven(self, id_: bytes) -> bool:
        return any(task.get_name() == id_.hex() and not task.done() for task in self.tasks)

    def _spawn(self, record: MoveRecord) -> None:
        records = self.port.writer.moves.home.records
        self.tasks.keep(lambda: self._drive(records.get(record.id, record)), record.id.hex())

    # --- one move --------------------------------------------------------------------------------

    async def _drive(self, record: MoveRecord) -> None:
        """To its end. When the store is lost the engine opens it anew and calls `take_over`: then this
        task is cancelled and another one goes on."""
        if record.step is MoveStep.LEARNING:
            record = await self._decide(record)
        while record.is_undone:
            if record.step is MoveStep.COMMITTED:
                await self._announcing.announce(record)
            else:
                await self._announcing.call_off(record)
            effort = self._efforts.pop(record.id, Effort())
            record = await self._insist(End(record.id, effort.held_us))
            self.settle()

    async def _decide(self, record: MoveRecord) -> MoveRecord:
        """Until it is committed or given up."""
        effort = self._efforts[record.id] = Effort()
        reason = await self._prepare(record, effort)
        if reason:
            await self._insist(Abort(record.id, reason))
        record = self.port.writer.moves.home.records[record.id]
        _log.info(
            "move committed" if record.step is MoveStep.COMMITTED else "move given up",
            move=record.id.hex(),
            order=record.move,
            copied=effort.copied,
            held_ms=effort.held_us // 1000,
            reason=reason,
        )
        return record

    async def _prepare(self, record: MoveRecord, effort: Effort) -> str:
        """Attempts until one is committed; or why the move is given up."""
        limit_s = self.port.config.move_limit_s
        give_up_us = record.began_us + round(limit_s * MICROSECONDS)
        while True:
            try:
                if await self._preparing.attempt(record, effort):
                    return ""
            except GivenUp as error:
                return str(error)
            except TRANSIENT as error:
                _log.warning("move not made yet", move=record.id.hex(), reason=error)
                if now_us() > give_up_us:
                    return f"not made within {limit_s:g} s: {error}"
                await asyncio.sleep(self.port.config.tell_again_s)

    async def _insist(self, step: Abort | End) -> MoveRecord:
        """Local steps fail only with the store; then this task is replaced."""
        while True:
            try:
                await self.port.step(step)
                return self.port.writer.moves.home.records[step.id]
            except UTupleError as error:
                _log.warning("step not taken yet", step=type(step).__name__, reason=error)
                await asyncio.sleep(self.port.config.tell_again_s)
