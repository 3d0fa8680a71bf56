"""The mover: drives the moves this server is home of, and ships what is drained from it.

What may be done is decided in the writer's order (`moving`); here are the calls to the others, their
repetition, and the hold. Everything durable is in the records, so after a restart, or when the store was
opened anew, each undone move is taken up from its record: learning begins again, telling goes on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.move import Move, MoveKind, target
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.errors import NotRegistered, OutcomeUnknown, UTupleError
from utuple.model.columns import MICROSECONDS
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.server.moving.servers import Others
from utuple.server.moving.shipping import Shipping
from utuple.server.moving.steps import Abort, Begin, CheckLine, Commit, End
from utuple.server.moving.teaching import GivenUp, NotReady, Teaching, ready_request, require_ready
from utuple.server.ports import MovePort
from utuple.store.contract import StoreUnavailable
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, server_to_wire

_log = Log("utuple.server.moving.driver")
_TROUBLE = (NotRegistered, OutcomeUnknown, NotReady, StoreUnavailable)
"""What may pass: try again. (A search that failed does not make the engine open its store anew.)"""


_CUTS = 5
"""Cuts in one attempt before everything is taught anew."""
_FORGETTING = 5
"""How often a learner is told that it may forget; what it keeps of it does no harm."""


def _not_begun(move: str, error: BaseException, _again_s: float | None) -> None:
    """The caller has the error too, if it still waits."""
    _log.warning("move not begun", move=move, reason=error)


@dataclass(slots=True)
class Effort:
    """What a move cost so far."""

    copied: int = 0
    rows: int = 0
    held_us: int = 0
    cuts: int = 0


@dataclass(slots=True, eq=False)
class Mover:
    engine: MovePort
    others: Others
    tasks: Tasks = field(default_factory=Tasks)
    _beginning: Tasks = field(default_factory=lambda: Tasks(_not_begun))
    _efforts: dict[bytes, Effort] = field(default_factory=dict)
    shipping: Shipping = field(init=False)

    def __post_init__(self) -> None:
        self.shipping = Shipping(self.engine, self.others)

    def take_over(self) -> None:
        """The store was opened (again): what was under way goes on from its records."""
        for task in self.tasks:
            task.cancel()
        for record in self.engine.writer.moving.undone:
            self._spawn(record)
        self.shipping.take_over(self.tasks)

    def settle(self) -> None:
        """A committed drain may have been heard of: what was shipped goes."""
        self.shipping.settle(self.tasks)

    async def order(self, id_: bytes, move: Move) -> str:
        """Record the move and set out, also if the caller does not wait for it: what is recorded is driven.
        Empty, or why it is not made."""
        return await asyncio.shield(self._beginning.start(self._begin(id_, move), id_.hex()))

    async def _begin(self, id_: bytes, move: Move) -> str:
        outcome = await self.engine.step(Begin(id_, move))
        record = self.engine.writer.moving.records.get(id_)
        if not outcome.done or record is None:
            return outcome.reason
        _log.info("move begun", move=id_.hex(), order=move, why=move.why)
        if record.step is MoveStep.LEARNING and not self._is_driven(id_):
            self._spawn(record)
        return ""

    def _is_driven(self, id_: bytes) -> bool:
        return any(task.get_name() == id_.hex() and not task.done() for task in self.tasks)

    def _spawn(self, record: MoveRecord) -> None:
        records = self.engine.writer.moving.records
        self.tasks.keep(lambda: self._drive(records.get(record.id, record)), record.id.hex())

    # --- one move --------------------------------------------------------------------------------

    async def _drive(self, record: MoveRecord) -> None:
        """To its end. When the store is lost the engine opens it anew and calls `take_over`: then this
        task is cancelled and another one goes on."""
        if record.step is MoveStep.LEARNING:
            record = await self._to_commit(record)
        while record.is_undone:
            if record.step is MoveStep.COMMITTED:
                await self._tell(record)
            else:
                await self._call_off(record)
            record = await self._end(record)

    async def _to_commit(self, record: MoveRecord) -> MoveRecord:
        give_up_us = record.began_us + round(self.engine.config.move_limit_s * MICROSECONDS)
        effort = self._efforts[record.id] = Effort()
        reason = ""
        pause_s = self.engine.config.tell_again_s
        while not reason:
            try:
                if await self._attempt(record, effort):
                    break
                continue  # something came after the cut
            except GivenUp as error:
                reason = str(error)
            except _TROUBLE as error:
                _log.warning("move not made yet", move=record.id.hex(), reason=error)
                if now_us() > give_up_us:
                    reason = f"not made within {self.engine.config.move_limit_s:g} s: {error}"
                else:
                    await asyncio.sleep(pause_s)
        if reason:
            await self._insist(Abort(record.id, reason))
        record = self.engine.writer.moving.records[record.id]
        _log.info(
            "move committed" if record.step is MoveStep.COMMITTED else "move given up",
            move=record.id.hex(),
            order=record.move,
            copied=effort.copied,
            held_ms=effort.held_us // 1000,
            reason=reason,
        )
        return record

    async def _attempt(self, record: MoveRecord, effort: Effort) -> bool:
        """Prepare everyone, then the commit point. False: prepare again at once."""
        move = record.move
        after = target(move, record.before)
        if move.learner not in (None, self.engine.config.name):  # a home knows them all
            return await self._teach(record, str(move.learner), after, effort)
        if move.kind in (MoveKind.RELEASE, MoveKind.DRAIN):
            await self._tell_member(record.before, move.member)
        if move.kind is MoveKind.RELEASE:
            await self._require_vacant(record)
        if move.kind is MoveKind.DRAIN:
            effort.rows = await self._ship(record)
            await self._make_ready(record, move.helper, after, shipped=effort.rows)
        if record.before.home == move.member and after[0].home != move.helper:
            await self._make_ready(record, after[0].home, after)
        return await self._commit(record, None, effort)

    async def _teach(
        self, record: MoveRecord, learner: str, after: tuple[Line, ...], effort: Effort
    ) -> bool:
        teaching = Teaching(self.engine, self.others, record, self._place(learner))
        await teaching.teach_all()
        # The first cut is made without a hold: where no EF or CA comes just then, nobody waits.
        for number in range(_CUTS):
            began_us = now_us()
            release = self.engine.hold(record.move.learned) if number else None
            try:
                cut = await teaching.teach_rest()
                await teaching.make_ready(after, self._infos(after))
                effort.copied = teaching.count
                effort.cuts += 1
                if await self._commit(record, cut, effort):
                    return True
            finally:
                if release is not None:
                    release()
                    most_us = round(self.engine.config.hold_limit_s * MICROSECONDS)
                    effort.held_us += min(now_us() - began_us, most_us)
        return False

    async def _commit(self, record: MoveRecord, cut: int | None, effort: Effort) -> bool:
        step = Commit(record.id, cut, effort.copied, effort.rows, effort.cuts)
        outcome = await self.engine.step(step)
        if outcome.done:
            return True
        if cut is None:
            raise GivenUp(outcome.reason)
        _log.info("cut not held", move=record.id.hex(), reason=outcome.reason)
        return False

    async def _require_vacant(self, record: MoveRecord) -> None:
        line, member = record.before, record.move.member
        if member == self.engine.config.name:
            reason = await self.vacant(line)
        else:
            answer = await self.others.vacant(
                self._place(member), pb.VacantRequest(line=line_to_wire(line)), self._timeout_s
            )
            reason = "" if answer.vacant else answer.reason
        if reason:
            raise GivenUp(f"{member} cannot leave: {reason}")

    async def vacant(self, line: Line) -> str:
        """Is this server off by this very line, and does it hold nothing of it? Else why not."""
        checked = await self.engine.step(CheckLine(line))
        if not checked.done:
            return checked.reason
        (census,) = await self.engine.store.census([line.section], now_us())
        return "" if census.is_empty else f"it holds {census.rows} uTuples"

    async def _ship(self, record: MoveRecord) -> int:
        move, line = record.move, record.before
        heir = self.engine.address_of(move.helper)
        if heir is None:
            raise NotReady(f"the address of {move.helper} is not known")
        if move.member == self.engine.config.name:
            return await self.shipping.bring(record.id, line, heir)
        request = pb.ShipRequest(move=record.id, line=line_to_wire(line), heir=server_to_wire(heir))
        while True:
            answer = await self.others.ship(self._place(move.member), request, self._timeout_s * 2)
            if answer.reason:
                raise NotReady(answer.reason)
            if answer.done:
                return answer.rows

    async def _make_ready(
        self,
        record: MoveRecord,
        name: str,
        after: tuple[Line, ...],
        *,
        shipped: int | None = None,
    ) -> None:
        request = ready_request(record.id, after, self._infos(after), shipped=shipped)
        answer = await self.others.ready(self._place(name), request, self._timeout_s)
        require_ready(answer)

    # --- after the commit, or after giving up ----------------------------------------------------

    async def _tell(self, record: MoveRecord) -> None:
        """Everyone who must know, each on its own, until all do. Who is suspended meanwhile hears of it
        when it returns; but not a drain's heir, whose shadows wait for this."""
        names = sorted(record.audience - {self.engine.config.name})
        await asyncio.gather(*(self._tell_until_heard(record, name) for name in names))

    async def _tell_until_heard(self, record: MoveRecord, name: str) -> None:
        pause_s = self.engine.config.tell_again_s
        while not self._is_excused(record, name):
            try:
                lines = self._current(record)
                if await self._hear(name, lines):
                    return
            except _TROUBLE as error:
                _log.info("not told yet", server=name, order=record.move, reason=error)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, self.engine.config.tell_again_s * 10)

    def _current(self, record: MoveRecord) -> list[Line]:
        """What has become of the section by now."""
        return self.engine.lines.overlapping(record.move.section)

    def _is_excused(self, record: MoveRecord, name: str) -> bool:
        if record.move.kind is MoveKind.DRAIN and name == record.move.helper:
            return False
        members = [line.member(name) for line in self._current(record)]
        there = [member for member in members if member is not None]
        return bool(there) and all(member.suspended for member in there)

    async def _tell_member(self, line: Line, name: str) -> None:
        if name != self.engine.config.name and not await self._hear(name, [line]):
            raise NotReady(f"{name} has not taken {line}")

    async def _hear(self, name: str, lines: list[Line]) -> bool:
        request = pb.HearRequest(
            lines=[line_to_wire(line) for line in lines],
            servers=self._infos(tuple(lines)),
            settled=self.engine.writer.moving.settled_for(name),
        )
        answer = await self.others.hear(self._place(name), request, self._timeout_s)
        held = {line.start: line.epoch for line in answer.lines}
        return all(held.get(line.section.start, 0) >= line.epoch for line in lines)

    async def _call_off(self, record: MoveRecord) -> None:
        """Whoever took part forgets it; the drained first, so that nothing more is shipped."""
        move = record.move
        names = (move.member, move.helper) if move.kind is MoveKind.DRAIN else (move.learner,)
        for name in names:
            if name == self.engine.config.name:
                await self.shipping.forget(record.id)
            elif name:
                await self._forget_until_heard(record, name)

    async def _forget_until_heard(self, record: MoveRecord, name: str) -> None:
        pause_s = self.engine.config.tell_again_s
        attempts = 0
        while record.move.kind is MoveKind.DRAIN or attempts < _FORGETTING:
            attempts += 1
            try:
                request = pb.ForgetRequest(move=record.id)
                await self.others.forget(self._place(name), request, self._timeout_s)
                return
            except _TROUBLE as error:
                _log.info("not called off yet", server=name, order=record.move, reason=error)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, self.engine.config.tell_again_s * 10)

    async def _end(self, record: MoveRecord) -> MoveRecord:
        effort = self._efforts.pop(record.id, Effort())
        await self._insist(End(record.id, effort.held_us))
        self.settle()
        return self.engine.writer.moving.records[record.id]

    async def _insist(self, step: Abort | End) -> None:
        """Local steps fail only with the store; then this task is replaced."""
        while True:
            try:
                await self.engine.step(step)
                return
            except UTupleError as error:
                _log.warning("step not taken yet", step=type(step).__name__, reason=error)
                await asyncio.sleep(self.engine.config.tell_again_s)

    # --- places ----------------------------------------------------------------------------------

    @property
    def _timeout_s(self) -> float:
        return self.engine.config.other_s

    def _place(self, name: str) -> str:
        info = self.engine.address_of(name)
        if info is None:
            raise NotReady(f"the address of {name} is not known")
        return info.address

    def _infos(self, lines: tuple[Line, ...]) -> list[pb.ServerInfo]:
        return [server_to_wire(info) for info in self._known(lines)]

    def _known(self, lines: tuple[Line, ...]) -> list[ServerInfo]:
        names = {member.name for line in lines for member in line.members}
        return [info for info in map(self.engine.address_of, sorted(names)) if info is not None]
