"""The uTupleServer's gRPC face: dull. Decode, ask the engine, encode; errors through one table."""

from __future__ import annotations

import asyncio
import os
from array import array
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import grpc

from utuple.errors import UTupleError
from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.utuple import Kind
from utuple.runtime.clock import now_us
from utuple.server.devices import Handed
from utuple.server.engine import Engine
from utuple.server.intake import adoption, answer_into, one_template, request_from_wire
from utuple.server.reading import ReaderStream, pieces
from utuple.store.contract import Search
from utuple.wire import utuple_pb2 as pb
from utuple.wire import utuple_pb2_grpc as rpc
from utuple.wire.cluster import line_to_wire, load_to_wire
from utuple.wire.codec import columns_to_wire
from utuple.wire.status import abort

Context = grpc.aio.ServicerContext[Any, Any]

_HANDED: dict[Handed, pb.Handed.ValueType] = {
    Handed.HANDED_OVER: pb.HANDED_OVER,
    Handed.NOT_CONNECTED: pb.NOT_CONNECTED,
    Handed.NOT_CONFIRMED: pb.NOT_CONFIRMED,
}


class ServerService(rpc.ServerServicer):
    def __init__(self, engine: Engine, address: str) -> None:
        self._engine = engine
        self._address = address
        self._since_us = now_us()

    async def Register(self, request: pb.RegisterRequest, context: Context) -> pb.RegisterAnswer:
        message = pb.RegisterAnswer()
        try:
            answer = await self._engine.register(request_from_wire(request), request.ByteSize())
        except UTupleError as error:
            await abort(context, error)
            raise
        answer_into(message, answer, self._engine.writer.lines.servers)
        message.load.CopyFrom(load_to_wire(self._engine.load()))
        return message

    async def Command(self, request: pb.CommandRequest, context: Context) -> pb.CommandAnswer:
        message = pb.CommandAnswer()
        command = request.command.id
        delivering = self._engine.delivering
        try:
            decoded = one_template(request.command, Kind.CA, retry=request.retry)
            handover = delivering.expect(command)
            answer = await self._engine.register(decoded, request.ByteSize())
            if not answer.refusals:
                limit_s = min(request.confirm_us / MICROSECONDS, self._engine.config.max_confirm_s)
                await handover.found.wait()
                await _wait(handover.confirmed, limit_s)
                for formal, address in handover.devices:
                    handed = _HANDED[handover.handed(formal)]
                    message.devices.add(id=formal, address=address, handed=handed)
        except UTupleError as error:
            await abort(context, error)
            raise
        finally:
            delivering.forget(command)
        answer_into(message, answer, self._engine.writer.lines.servers)
        message.load.CopyFrom(load_to_wire(self._engine.load()))
        return message

    async def Read(self, request: pb.ReadRequest, context: Context) -> AsyncIterator[pb.ReadChunk]:
        try:
            decoded = one_template(request.template, Kind.EF)
            answer = await self._engine.register(decoded, request.ByteSize())
            first = pb.ReadChunk()
            answer_into(first, answer, self._engine.writer.lines.servers)
            yield first
            if answer.refusals:
                return
            search = Search(decoded.templates[0][1], 0, answer.seq, now_us())
            async with aclosing(self._engine.store.search(search)) as found:
                async for batch in found:
                    for columns in _cut(batch.columns):
                        yield pb.ReadChunk(columns=columns)
        except UTupleError as error:
            await abort(context, error)

    async def Deliver(
        self, request_iterator: AsyncIterator[pb.FromReader], context: Context
    ) -> AsyncIterator[pb.ToReader]:
        stream = ReaderStream(self._engine.delivering, self._engine.config.name)
        try:
            async with aclosing(stream.serve(request_iterator)) as messages:
                async for message in messages:
                    yield message
        except UTupleError as error:
            await abort(context, error)

    async def Devices(
        self, request: pb.DevicesRequest, context: Context
    ) -> AsyncIterator[pb.Columns]:
        try:
            async with aclosing(self._engine.store.devices(now_us())) as found:
                async for batch in found:
                    now = now_us()
                    left_us = array("q", [max(0, expires - now) for expires in batch.expires_us])
                    for columns in _cut(replace(batch.columns, lifetimes_us=left_us)):
                        yield columns
        except UTupleError as error:
            await abort(context, error)

    async def Adopt(self, request: pb.AdoptRequest, context: Context) -> pb.AdoptAnswer:
        try:
            answer = await self._engine.register(adoption(request))
        except UTupleError as error:
            await abort(context, error)
            raise
        return pb.AdoptAnswer(adopted=answer.adopted)

    async def Status(self, request: pb.StatusRequest, context: Context) -> pb.ServerStatus:
        engine = self._engine
        return pb.ServerStatus(
            name=engine.config.name,
            state=engine.state,
            seq=engine.writer.seq,
            load=load_to_wire(engine.load()),
            lines=[line_to_wire(line) for line in engine.writer.lines.all],
            events=engine.stats.events,
            devices=engine.stats.devices,
            event_templates=engine.writer.count(Kind.EF),
            command_templates=engine.writer.count(Kind.CA),
            size_bytes=engine.stats.size_bytes,
            capacity_bytes=engine.config.capacity_bytes,
            readers=_readers(engine),
            registered=engine.registered,
            delivered=engine.delivering.delivered,
            pid=os.getpid(),
            since_us=self._since_us,
            address=self._address,
        )


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


def _readers(engine: Engine) -> list[pb.ReaderStatus]:
    """Who reads here, connected or expected back."""
    readers: dict[str, pb.ReaderStatus] = {}
    for stored in list(engine.writer.templates.values()):
        name = stored.utuple.reader
        if stored.utuple.kind is not Kind.EF or name is None:
            continue
        status = readers.setdefault(name, pb.ReaderStatus(reader=name))
        status.formals += 1
        cursor = engine.delivering.cursors.get(stored.utuple.id)
        if cursor is not None:
            status.connected = True
            status.lag = max(status.lag, engine.delivering.cursors.lag(cursor))
        else:
            behind = engine.writer.seq - engine.delivering.cursors.acknowledged(stored.utuple.id)
            status.lag = max(status.lag, behind)
    return list(readers.values())
