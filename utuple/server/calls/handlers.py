"""The calls of a uTupleServer without gRPC: messages in, messages out, our errors raised. `service.py`
puts them on the network; the virtual cluster calls them as they are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext
from functools import partial
from math import inf
from typing import cast

from utuple.errors import Unavailable
from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.key import key_of
from utuple.model.utuple import Kind, UTuple
from utuple.runtime.aside import aside
from utuple.runtime.clock import monotonic_s, now_us
from utuple.security.identity import Identity
from utuple.server.calls import commanded, parking, readers
from utuple.server.calls import status_parts as parts
from utuple.server.calls.deliver_stream import DeliverStream
from utuple.server.calls.intake import (
    adoption,
    answer_into,
    asked_rows,
    asked_to_command,
    asked_to_read,
    is_large,
    page_from_wire,
    request_from_wire,
)
from utuple.server.calls.moves import MovingCalls
from utuple.server.calls.refill import refill
from utuple.server.calls.register_stream import RegisterStream
from utuple.server.delivering.handover import Handover
from utuple.server.delivering.reading.searching import stored_matches
from utuple.server.sharing import FairShares
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Answer, Request
from utuple.transport.duplex import Duplex, MessageSink
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import causes_to_wire, line_to_wire, load_to_wire, record_to_wire
from utuple.wire.codec import columns_to_wire, refuse_unknown
from utuple.wire.pieces import pieces

_JOIN_WITHIN_S = 0.05
"""Rows that a search finds within this travel in the message that says the read was accepted."""

_RECEIPT_BYTES = 26
"""What a device weighs in an answer beside its address."""


class ServerCalls(MovingCalls):
    def __init__(self, engine: Engine, address: str) -> None:
        super().__init__(engine)
        self._address = address
        self._since_us = now_us()
        self.from_servers = 0
        """Calls of other uTupleServers."""
        self._streams: set[RegisterStream[Answer]] = set()

    async def register(
        self,
        request: pb.RegisterRequest,
        left_s: float | None = None,
        caller: Identity | None = None,
    ) -> pb.RegisterAnswer:
        """`left_s`: how long its caller waits, if that is known."""
        return self._told(await self._submit(request, left_s, caller), caller)

    def _submit(
        self, request: pb.RegisterRequest, left_s: float | None, caller: Identity | None
    ) -> asyncio.Future[Answer]:
        engine = self._engine
        if caller is not None and (shares := self._shares) is not None:
            shares.check(caller.name, asked_rows(request), monotonic_s())
        size = request.ByteSize()
        within_s = inf if left_s is None else engine.config.answer_share * left_s
        if is_large(request, size):
            return asyncio.create_task(self._submit_large(request, size, within_s, caller))
        asked = self._judged(request_from_wire(request), caller, size)
        return engine.submit(asked, size, within_s)

    async def _submit_large(
        self, request: pb.RegisterRequest, size: int, within_s: float, caller: Identity | None
    ) -> Answer:
        engine = self._engine
        asked = self._judged(await aside(request_from_wire, request), caller, size)
        return await engine.submit(asked, size, within_s)

    def noted(self, caller: Identity | None, what: str, about: Mapping[str, str]) -> None:
        """In the audit of a secured server: who ordered it."""
        if (judge := self._engine.judge) is not None:
            judge.ordered(caller, what, **about)

    def _judged(self, request: Request, caller: Identity | None, size: int) -> Request:
        """Without what the caller may not register (law 8). Raises if it is more than its share."""
        if caller is None or (judge := self._engine.judge) is None:
            return request
        if (shares := judge.shares) is not None:
            shares.admit(caller.name, request, size, monotonic_s())
        return judge.judged(request, caller)

    def _told(self, answer: Answer, caller: Identity | None) -> pb.RegisterAnswer:
        message = pb.RegisterAnswer(load=load_to_wire(self._engine.load()))
        if answer.refusals or answer.lines:
            self._tell(message, answer, caller)
        return message

    def _tell(
        self,
        message: pb.RegisterAnswer | pb.CommandAnswer,
        answer: Answer,
        caller: Identity | None,
    ) -> None:
        answer_into(message, answer, self._engine.writer.lines.servers)
        if caller is not None and (judge := self._engine.judge) is not None:
            judge.answered(caller, answer.refusals)

    async def registering(self, wire: Duplex, caller: Identity | None = None) -> None:
        submit, wait_s = partial(self._submit, caller=caller), partial(self._wait_s, caller=caller)
        stream = RegisterStream(submit, partial(self._told, caller=caller), wire, wait_s)
        self._streams.add(stream)
        try:
            with self._shared(caller):
                await stream.serve()
        finally:
            self._streams.discard(stream)

    @property
    def _shares(self) -> FairShares | None:
        return None if (judge := self._engine.judge) is None else judge.shares

    def _wait_s(self, request: pb.RegisterRequest, caller: Identity | None) -> float:
        """How long this one has to wait for its share to have room for that."""
        if caller is None or (shares := self._shares) is None:
            return 0.0
        return shares.wait_s(caller.name, asked_rows(request), monotonic_s())

    def _shared(self, caller: Identity | None) -> AbstractContextManager[None]:
        """One of the caller's streams, for as long as it is open."""
        if caller is None or (shares := self._shares) is None:
            return nullcontext()
        return shares.stream(caller.name)

    def stop(self) -> None:
        """No more registrations on streams; what was read is answered."""
        for stream in self._streams:
            stream.close()

    async def command(
        self, request: pb.CommandRequest, caller: Identity | None = None
    ) -> pb.CommandAnswer:
        message = pb.CommandAnswer()
        delivering = self._engine.delivering
        asked = await asked_to_command(request)
        if (judge := self._engine.judge) is not None and caller is not None:
            if (shares := judge.shares) is not None:
                shares.admit(caller.name, asked, request.ByteSize(), monotonic_s())
            asked = judge.command(asked, caller)
        [(_, command)] = asked.templates
        handover = delivering.commands.expect(command)
        try:
            answer = await self._engine.register(asked, request.ByteSize())
            if not answer.refusals:
                limit_s = min(request.confirm_us / MICROSECONDS, self._engine.config.max_confirm_s)
                await handover.found.wait()
                if not request.after:  # else they had their time with the first portion
                    await _wait(handover.confirmed, limit_s)
                self._tell_devices(message, handover, request.after)
        finally:
            delivering.commands.handovers.forget(command.id)
        self._tell(message, answer, caller)
        message.load.CopyFrom(load_to_wire(self._engine.load()))
        return message

    async def commanded(
        self, request: pb.CommandedRequest, caller: Identity | None = None
    ) -> pb.CommandedAnswer:
        refuse_unknown(request, "request")
        return await commanded.commanded(self._engine, request, caller)

    def _tell_devices(self, message: pb.CommandAnswer, handover: Handover, after: bytes) -> None:
        """At least one, and no more than a portion. They are told by their ids, so that a device is in exactly one portion
        whatever happens between two of them: others may register, or a restart may have them searched again."""
        left_bytes = self._engine.config.receipt_portion_bytes
        for formal, address in handover.devices_after(after):
            if left_bytes <= 0:
                message.more = True
                return
            handed = cast("pb.Handed.ValueType", int(handover.handed(formal)))
            message.devices.add(id=formal, address=address, handed=handed)
            left_bytes -= _RECEIPT_BYTES + len(address.encode())

    async def read(
        self, request: pb.ReadRequest, caller: Identity | None = None
    ) -> AsyncGenerator[pb.ReadChunk, None]:
        template, epoch = await asked_to_read(request.template)
        if (judge := self._engine.judge) is not None and caller is not None:
            judge.check_read(template, caller)
            if (shares := judge.shares) is not None:
                shares.check_conditions(len(template.where or ()))
        self._engine.reads += 1
        try:
            answer = self._engine.judge_read(template.family, epoch)
            accepted = pb.ReadChunk()
            answer_into(accepted, answer, self._engine.writer.lines.servers)
            if answer.refusals:
                yield accepted
                return
            found = _in_pieces(self._stored(request, template, answer.seq))
            async with aclosing(found), aclosing(_joined(accepted, found)) as chunks:
                async for chunk in chunks:
                    yield chunk
            self._refuse_drained(template)
        finally:
            self._engine.reads -= 1

    def _stored(
        self, request: pb.ReadRequest, template: UTuple, upto: int
    ) -> AsyncGenerator[Columns, None]:
        store, now = self._engine.store, now_us()
        if request.HasField("page"):
            return store.page(page_from_wire(request.page, template, now))
        origins = dict(self._engine.delivering.cursors.origins)
        return stored_matches(store, template, upto, origins, now)

    def _refuse_drained(self, template: UTuple) -> None:
        """A long reading during which what it read was drained and deleted may have a gap."""
        key = key_of(*template.family)
        if any(key in section for section in self._engine.writer.moves.participant.left):
            raise Unavailable("what was read here was brought to another server: read again")

    async def deliver(
        self,
        messages: AsyncIterator[pb.FromReader],
        sink: MessageSink,
        caller: Identity | None = None,
    ) -> None:
        engine, name = self._engine, self._engine.config.name
        with self._shared(caller):
            stream = DeliverStream(engine.delivering, name, sink, caller, engine.delivered)
            await stream.serve(messages)

    async def devices(self, request: pb.DevicesRequest) -> AsyncGenerator[pb.Columns, None]:
        refuse_unknown(request, "request")
        async with aclosing(refill(self._engine.store, request)) as found:
            async for columns in found:
                for piece in _cut(columns):
                    yield piece

    async def adopt(self, request: pb.AdoptRequest) -> pb.AdoptAnswer:
        answer = await self._engine.register(adoption(request))
        return pb.AdoptAnswer(adopted=answer.adopted)

    async def forget_reader(self, request: pb.ForgetReaderRequest) -> pb.ForgetReaderAnswer:
        refuse_unknown(request, "request")
        return await readers.forget(self._engine, request.reader)

    async def parked(self, request: pb.ParkedRequest) -> pb.ParkedAnswer:
        refuse_unknown(request, "request")
        return await parking.parked(self._engine, request)

    async def status(self, request: pb.StatusRequest) -> pb.ServerStatus:
        engine = self._engine
        moves, now_s = engine.writer.moves, monotonic_s()
        rates = engine.workload.families.per_s(now_s)
        causes = engine.workload.by_family(now_s)
        records = sorted(
            moves.home.records.values(), key=lambda one: (-one.is_undone, -one.began_us)
        )
        return pb.ServerStatus(
            name=engine.config.name,
            state=engine.state,
            seq=engine.writer.seq,
            load=load_to_wire(engine.load()),
            lines=[line_to_wire(line) for line in engine.own_lines],
            events=engine.stats.events,
            devices=engine.stats.devices,
            event_templates=engine.writer.index.count(Kind.EF),
            command_templates=engine.writer.index.count(Kind.CA),
            size_bytes=engine.stats.size_bytes,
            capacity_bytes=engine.config.capacity_bytes,
            readers=[] if request.brief else await readers.statuses(engine),
            registered=engine.registered,
            delivered=engine.delivering.delivered,
            pid=os.getpid(),
            since_us=self._since_us,
            address=self._address,
            sections=parts.sections(engine, rates, causes, spread=request.spread),
            moves=[record_to_wire(record) for record in records],
            leaving=moves.participant.leaving,
            longest_pause_us=round(engine.workload.meter.longest_pause_s(now_s) * MICROSECONDS),
            shipments=len(moves.participant.shipments),
            from_servers=self.from_servers,
            families=parts.families(
                engine, rates, causes, engine.workload.families.mean_bytes(now_s)
            ),
            left=parts.left(engine),
            grants_number=moves.grants_number,
            by_cause=causes_to_wire(engine.workload.by_cause(now_s)),
            commit_us=round(engine.workload.meter.commit_s(now_s) * MICROSECONDS),
        )


async def _joined(
    accepted: pb.ReadChunk, found: AsyncGenerator[pb.Columns, None]
) -> AsyncGenerator[pb.ReadChunk, None]:
    """The rows of a quick search travel in the message that says the read was accepted, which saves a message. If the
    search takes longer, that message leaves without rows: the client waits for it before it goes on, and must not take
    a slow search for a silent server."""
    first = asyncio.ensure_future(anext(found, None))
    try:
        await asyncio.wait((first,), timeout=_JOIN_WITHIN_S)
        if not first.done():
            yield accepted
            accepted = pb.ReadChunk()
        columns = await first
        accepted.MergeFrom(pb.ReadChunk(columns=columns))
        yield accepted
        async for columns in found:
            yield pb.ReadChunk(columns=columns)
    finally:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)


async def _in_pieces(found: AsyncGenerator[Columns, None]) -> AsyncGenerator[pb.Columns, None]:
    async with aclosing(found):
        async for columns in found:
            for piece in _cut(columns):
                yield piece


def _cut(columns: Columns) -> Iterator[pb.Columns]:
    rows = range(len(columns))
    for first, last in pieces(columns, rows):
        whole = last - first == len(columns)
        yield columns_to_wire(columns if whole else columns.take(rows[first:last]))


async def _wait(event: asyncio.Event, limit_s: float) -> None:
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        return
