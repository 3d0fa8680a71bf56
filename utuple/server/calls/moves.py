"""The calls by which load moves, without gRPC: messages in, messages out. From the load monitor and the
operator: move, leave. From other servers: learn, ready, hear, forget, vacant, older, ship, take."""

from __future__ import annotations

from array import array

from utuple.errors import InvalidInput, Unavailable
from utuple.model.utuple import ID_BYTES, check_id
from utuple.server.delivering.absent.absences import Absence, decode_absence
from utuple.server.moving.notes import Received
from utuple.server.moving.servers import NotReady
from utuple.server.moving.steps import (
    HearLines,
    Learn,
    Leave,
    Promise,
    ReceiveRows,
)
from utuple.server.writing.engine import Engine
from utuple.store.contract import FormalPosition
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, line_to_wire, move_from_wire, server_from_wire
from utuple.wire.codec import columns_from_wire, refuse_unknown, taught_from_wire, unpack


class MovingCalls:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def move(self, request: pb.Move) -> pb.MoveAnswer:
        refuse_unknown(request, "order")
        id_ = self._engine.new_id()
        reason = await self._engine.move_driver.order(id_, move_from_wire(request))
        return pb.MoveAnswer(accepted=not reason, reason=reason, id=b"" if reason else id_)

    async def leave(self, request: pb.LeaveRequest) -> pb.LeaveAnswer:
        outcome = await self._engine.step(Leave(stay=request.stay))
        return pb.LeaveAnswer(
            leaving=self._engine.writer.moves.participant.leaving, reason=outcome.reason
        )

    async def learn(self, request: pb.LearnRequest) -> pb.LearnAnswer:
        templates, left_us = taught_from_wire(request.templates)
        step = Learn(
            check_id(request.move),
            request.attempt,
            request.number,
            templates,
            left_us,
            _ids(request.cancelled),
        )
        outcome = await self._engine.step(step)
        return pb.LearnAnswer(count=outcome.count, digest=outcome.digest)

    async def ready(self, request: pb.ReadyRequest) -> pb.ReadyAnswer:
        step = Promise(
            check_id(request.move),
            tuple(line_from_wire(line) for line in request.lines),
            tuple(server_from_wire(info) for info in request.servers),
            (request.count, request.digest) if request.learned else None,
            request.rows if request.shipped else None,
        )
        outcome = await self._engine.step(step)
        return pb.ReadyAnswer(ready=outcome.done, reason=outcome.reason, never=outcome.never)

    async def hear(self, request: pb.HearRequest) -> pb.HearAnswer:
        lines = tuple(line_from_wire(line) for line in request.lines)
        step = HearLines(
            lines,
            tuple(server_from_wire(info) for info in request.servers),
            tuple(check_id(id_) for id_ in request.settled),
        )
        await self._engine.step(step)
        self._engine.move_driver.settle()
        held = [line for one in lines for line in self._engine.lines.overlapping(one.section)]
        return pb.HearAnswer(lines=[line_to_wire(line) for line in held])

    async def forget(self, request: pb.ForgetRequest) -> pb.ForgetAnswer:
        await self._engine.move_driver.shipping.forget(check_id(request.move))
        return pb.ForgetAnswer()

    async def vacant(self, request: pb.VacantRequest) -> pb.VacantAnswer:
        reason = await self._engine.move_driver.vacancy(line_from_wire(request.line))
        return pb.VacantAnswer(vacant=not reason, reason=reason)

    async def older(self, request: pb.OlderRequest) -> pb.OlderAnswer:
        try:
            upto = await self._engine.move_driver.older.held(line_from_wire(request.line))
        except NotReady as error:
            return pb.OlderAnswer(reason=str(error))
        return pb.OlderAnswer(upto=upto)

    async def ship(self, request: pb.ShipRequest) -> pb.ShipAnswer:
        line, heir = line_from_wire(request.line), server_from_wire(request.heir)
        try:
            rows = await self._engine.move_driver.shipping.ship(check_id(request.move), line, heir)
        except NotReady as error:
            return pb.ShipAnswer(reason=str(error))
        return pb.ShipAnswer(done=rows is not None, rows=rows or 0)

    async def take(self, request: pb.TakeRequest) -> pb.TakeAnswer:
        events, _ = columns_from_wire(request.events)
        devices, _ = columns_from_wire(request.devices)
        left_us = unpack("q", request.left_us, len(events) + len(devices), "left_us")
        step = ReceiveRows(
            check_id(request.move),
            request.origin,
            request.after,
            events,
            unpack("Q", request.seqs, len(events), "seqs"),
            array("q", left_us[: len(events)]),
            devices,
            array("q", left_us[len(events) :]),
            self._positions(request),
            _ids(request.cancelled),
        )
        absences = self._absences(request)
        if request.last or not all(one.move for one in absences):
            await self._until_it_counts(step)
        # Noted with the transaction of this step at the latest, so they are as durable as what is answered.
        ended = request.move.hex() if request.last else ""
        delivering = self._engine.delivering
        delivering.away.learn(absences, ended)
        ledgers = self._ledgers(request)
        if ledgers or request.last:
            delivering.seats.learn(ledgers, request.move.hex(), is_last=request.last)
            delivering.chores.save()
        for held in request.positions:
            acknowledged = _ids(held.acknowledged)
            delivering.commands.elsewhere.learn(check_id(held.formal), acknowledged)
        await self._engine.step(step)
        if step.positions:
            delivering.cursors.learn_positions(step.positions)
        received = self._engine.writer.moves.participant.received.get(request.move, Received({}))
        shadows = [pb.Position(origin=origin, seq=seq) for origin, seq in received.seqs.items()]
        return pb.TakeAnswer(shadows=shadows, rows=received.rows)

    async def _until_it_counts(self, step: ReceiveRows) -> None:
        """A drained server may hear of the commit before its heir does. Its last word must wait: by it the heir decides what is
        dropped, and finds no row while they are shadows. What is settled in the writer's order is durable with the step."""
        if step.id in self._engine.writer.moves.participant.received:
            raise Unavailable("what was brought here does not count yet; try again")
        await self._engine.step(step)

    def _positions(self, request: pb.TakeRequest) -> list[FormalPosition]:
        """A position in this server's own order is its own business."""
        return [
            FormalPosition(check_id(held.formal), position.origin, position.seq)
            for held in request.positions
            for position in held.positions
            if position.origin not in ("", self._engine.config.name)
        ]

    def _absences(self, request: pb.TakeRequest) -> list[Absence]:
        came = [
            decode_absence(one.name, one.body)
            for held in request.positions
            for one in held.absences
        ]
        return [one for one in came if one.origin not in ("", self._engine.config.name)]

    def _ledgers(self, request: pb.TakeRequest) -> list[tuple[bytes, str, bytes]]:
        return [
            (check_id(held.formal), one.name, one.body)
            for held in request.positions
            for one in held.ledgers
            if one.name not in ("", self._engine.config.name)
        ]


def _ids(packed: bytes) -> list[bytes]:
    if len(packed) % ID_BYTES:
        raise InvalidInput("ids", f"{len(packed)} bytes", f"must be {ID_BYTES} bytes each")
    return [packed[at : at + ID_BYTES] for at in range(0, len(packed), ID_BYTES)]
