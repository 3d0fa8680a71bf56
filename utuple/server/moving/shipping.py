"""Shipping: what a drained server brings to its heir, and how it ends.

Rows go in the order of their origin and seq, each portion durable at the heir before the next, so a broken
shipment goes on where the heir says it stopped. They are shadows there. Once the move is committed the heir
is told what happened to the formals since, and only then everything is deleted here.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from functools import partial

from utuple.cluster.line import Line, ServerInfo
from utuple.model.columns import left_us
from utuple.model.key import key_of
from utuple.model.portions import portions
from utuple.model.section import Section
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.server.delivering.absent.absences import encode_absence
from utuple.server.moving.notes import Shipment
from utuple.server.moving.servers import TRANSIENT, NotReady, OtherServers
from utuple.server.moving.steps import BeginShipping, EndShipping, Forget
from utuple.server.ports import MovePort
from utuple.store.contract import OWN_ORIGIN, Batch
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire, pack, unpack
from utuple.wire.pieces import PIECE_BYTES, pieces

_log = Log("utuple.server.moving.shipping")
_READERS_S = 30.0
"""How long what was drained waits for those who began to read it by the line before."""
_HELD = 10_000
"""Formals whose positions, or whose end, one message tells."""


class Shipping:
    def __init__(self, port: MovePort, others: OtherServers) -> None:
        self._port = port
        self._others = others
        self._bringing: dict[bytes, asyncio.Task[int]] = {}
        self._finishing: set[bytes] = set()

    def take_over(self, tasks: Tasks) -> None:
        for task in self._bringing.values():
            task.cancel()
        self._bringing.clear()
        self._finishing.clear()
        self.settle(tasks)

    # --- before the commit -----------------------------------------------------------------------

    async def ship(self, move: bytes, line: Line, heir: ServerInfo) -> int | None:
        """Asked by the home: how many rows are there when all are, None if it takes longer."""
        task = self._bringing.get(move)
        if task is None:
            task = self._bringing[move] = asyncio.create_task(self.bring(move, line, heir))
        await asyncio.wait([task], timeout=self._port.config.other_s)
        if not task.done():
            return None
        self._bringing.pop(move, None)
        if task.cancelled():
            raise NotReady("the shipment was broken off")
        return task.result()

    async def bring(self, move: bytes, line: Line, heir: ServerInfo) -> int:
        begun = await self._port.step(BeginShipping(move, line, heir))
        if not begun.done:
            raise NotReady(begun.reason)
        there = await self._send(heir.name, pb.TakeRequest(move=move))
        origins = [OWN_ORIGIN, *await self._port.store.origins()]
        for origin in origins:
            there = await self._bring_events(move, line.section, origin, heir.name, there)
        store = self._port.store
        async with aclosing(store.section_devices(line.section, now_us())) as found:
            async for batch in found:
                for part in _parts(batch):
                    request = pb.TakeRequest(
                        move=move,
                        devices=columns_to_wire(part.columns),
                        left_us=_left_of_devices(part),
                    )
                    there = await self._send(heir.name, request)
        for request in self._positions(move, line.section, move.hex()):
            there = await self._send(heir.name, request)
        async for request in self._acknowledged(move, line.section):
            there = await self._send(heir.name, request)
        _log.info("shipped", move=move.hex(), section=line.section, rows=there.rows)
        return there.rows

    async def _bring_events(
        self, move: bytes, section: Section, origin: str, heir: str, there: pb.TakeAnswer
    ) -> pb.TakeAnswer:
        name = origin or self._port.config.name
        after = next((held.seq for held in there.shadows if held.origin == name), 0)
        events = self._port.store.section_events(section, origin, after, now_us())
        async with aclosing(events) as found:
            async for batch in found:
                for part in _parts(batch):
                    request = pb.TakeRequest(
                        move=move,
                        origin=name,
                        events=columns_to_wire(part.columns),
                        seqs=pack(part.seqs),
                        left_us=_left(part),
                        after=after,
                    )
                    there = await self._send(heir, request)
                    after = part.seqs[-1]
        return there

    async def _send(self, heir: str, request: pb.TakeRequest) -> pb.TakeAnswer:
        """The heir has it, durably."""
        answer = await self._others.receive(heir, request)
        upto = max(unpack("Q", request.seqs, len(request.seqs) // 8, "seqs"), default=0)
        held = next((one.seq for one in answer.shadows if one.origin == request.origin), 0)
        if held < upto:
            raise NotReady(f"{heir} holds {request.origin} only up to {held}")
        return answer

    def _positions(
        self, move: bytes, section: Section, goes_on: str = ""
    ) -> Iterator[pb.TakeRequest]:
        """How far readers have come here, in this server's name."""
        held = self._held(section, goes_on)
        if not held:
            yield pb.TakeRequest(move=move)
        for first, end in portions((one.ByteSize() for one in held), PIECE_BYTES, _HELD):
            yield pb.TakeRequest(move=move, positions=held[first:end])

    def _held(self, section: Section, goes_on: str) -> list[pb.Held]:
        held: dict[bytes, pb.Held] = {}
        templates = self._port.writer.templates
        for position in self._port.positions():
            stored = templates.get(position.formal)
            if stored is not None and key_of(*stored.packed.family) in section:
                one = held.setdefault(position.formal, pb.Held(formal=position.formal))
                origin = position.origin or self._port.config.name
                one.positions.append(pb.Position(origin=origin, seq=position.seq))
        for absence in self._port.absences(goes_on):
            stored = templates.get(absence.formal)
            if stored is not None and key_of(*stored.packed.family) in section:
                one = held.setdefault(absence.formal, pb.Held(formal=absence.formal))
                one.absences.add(name=absence.note, body=encode_absence(absence))
        for formal, origin, ledger in self._port.ledgers():
            stored = templates.get(formal)
            if stored is not None and key_of(*stored.packed.family) in section:
                one = held.setdefault(formal, pb.Held(formal=formal))
                one.ledgers.add(name=origin, body=ledger)
        return list(held.values())

    async def _acknowledged(self, move: bytes, section: Section) -> AsyncIterator[pb.TakeRequest]:
        """Which commands devices have acknowledged here: their seqs mean nothing elsewhere."""
        request = pb.TakeRequest(move=move)
        async for family, formal, commands in self._port.acknowledged():
            if key_of(*family) in section:
                request.positions.add(formal=formal, acknowledged=b"".join(commands))
                if len(request.positions) == _HELD or request.ByteSize() > PIECE_BYTES:
                    yield request
                    request = pb.TakeRequest(move=move)
        if request.positions:
            yield request

    async def forget(self, move: bytes) -> None:
        task = self._bringing.pop(move, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._port.step(Forget(move))

    # --- after the commit ------------------------------------------------------------------------

    def settle(self, tasks: Tasks) -> None:
        """Shipments whose move is committed end now."""
        for move, shipment in self._port.writer.moves.participant.shipments.items():
            if shipment.is_settled and move not in self._finishing:
                self._finishing.add(move)
                tasks.keep(partial(self._finish, move), f"finishing {move.hex()}")

    async def _finish(self, move: bytes) -> None:
        """The heir hears what happened since, then everything goes."""
        readers_until_s = monotonic_s() + _READERS_S
        pauses = self._others.retry_pauses()
        while self._port.reads and monotonic_s() < readers_until_s:
            await pauses.wait()
        while (shipment := self._port.writer.moves.participant.shipments.get(move)) is not None:
            try:
                async for request in self._acknowledged(move, shipment.section):
                    await self._send(shipment.heir, request)
                for request in self._last_changes(move, shipment):
                    await self._send(shipment.heir, request)
                await self._port.step(EndShipping(move))
                _log.info("drained", move=move.hex(), section=shipment.section)
            except TRANSIENT as error:
                _log.info("not drained yet", move=move.hex(), reason=error)
                await pauses.wait()
        self._finishing.discard(move)

    def _last_changes(self, move: bytes, shipment: Shipment) -> Iterator[pb.TakeRequest]:
        yield from self._positions(move, shipment.section)
        gone = list(shipment.cancelled)
        for at in range(0, len(gone), _HELD):
            yield pb.TakeRequest(move=move, cancelled=b"".join(gone[at : at + _HELD]))
        yield pb.TakeRequest(move=move, last=True)


def _parts(batch: Batch) -> Iterator[Batch]:
    for first, last in pieces(batch.columns, range(len(batch))):
        rows = range(first, last)
        yield Batch(
            batch.columns.take(rows),
            array("Q", batch.seqs[first:last]),
            array("q", batch.expires_us[first:last]),
            batch.origin,
        )


def _left_of_devices(batch: Batch) -> bytes:
    now = now_us()
    rows = zip(batch.columns.lifetimes_us, batch.expires_us, strict=True)
    return pack(array("q", [left_us(*row, now) for row in rows]))


def _left(batch: Batch) -> bytes:
    now = now_us()
    return pack(array("q", [max(0, expires - now) for expires in batch.expires_us]))
