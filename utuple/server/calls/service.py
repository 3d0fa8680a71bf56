"""The uTupleServer's gRPC face: dull. `calls` does it; errors go through one table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from typing import Any, TypeVar, cast

import grpc

from utuple.errors import UTupleError
from utuple.runtime.logs import Log
from utuple.runtime.trust.guard import identity_of
from utuple.server.calls.handlers import ServerCalls
from utuple.server.writing.engine import Engine
from utuple.transport.duplex import Duplex
from utuple.wire import utuple_pb2 as pb
from utuple.wire import utuple_pb2_grpc as rpc
from utuple.wire.status import abort

Context = grpc.aio.ServicerContext[Any, Any]
T = TypeVar("T")
_log = Log("utuple.server.calls.service")


class ServerService(rpc.ServerServicer):
    def __init__(self, engine: Engine, address: str) -> None:
        self._calls = ServerCalls(engine, address)

    def stop(self) -> None:
        """Streams that would never end by themselves: registrations."""
        self._calls.stop()

    async def Register(self, request: pb.RegisterRequest, context: Context) -> pb.RegisterAnswer:
        return await _answered(
            self._calls.register(request, context.time_remaining(), identity_of(context)), context
        )

    async def Registering(  # type: ignore[override]
        self, request_iterator: AsyncIterator[pb.RegisterRequest], context: Context
    ) -> None:
        """It receives and sends by its context, which our own transport's can."""
        registering = self._calls.registering(cast(Duplex, context), identity_of(context))
        await _answered(registering, context)

    async def Command(self, request: pb.CommandRequest, context: Context) -> pb.CommandAnswer:
        return await _answered(self._calls.command(request, identity_of(context)), context)

    async def Commanded(self, request: pb.CommandedRequest, context: Context) -> pb.CommandedAnswer:
        return await _answered(self._calls.commanded(request, identity_of(context)), context)

    async def Adopt(self, request: pb.AdoptRequest, context: Context) -> pb.AdoptAnswer:
        answer = await _answered(self._calls.adopt(request), context)
        if answer.adopted:
            _log.info("first table adopted")
        return answer

    async def Status(self, request: pb.StatusRequest, context: Context) -> pb.ServerStatus:
        return await _answered(self._calls.status(request), context)

    async def Move(self, request: pb.Move, context: Context) -> pb.MoveAnswer:
        answer = await _answered(self._calls.move(request), context)
        if answer.accepted:
            kind, section = pb.MoveKind.Name(request.kind).lower(), f"{request.start:016x}"
            about = {"kind": kind, "section": section, "why": request.why}
            self._calls.noted(identity_of(context), "move", about)
        return answer

    async def Leave(self, request: pb.LeaveRequest, context: Context) -> pb.LeaveAnswer:
        answer = await _answered(self._calls.leave(request), context)
        self._calls.noted(identity_of(context), "stay" if request.stay else "drain", {})
        return answer

    async def ForgetReader(
        self, request: pb.ForgetReaderRequest, context: Context
    ) -> pb.ForgetReaderAnswer:
        answer = await _answered(self._calls.forget_reader(request), context)
        self._calls.noted(identity_of(context), "forget reader", {"reader": request.reader})
        return answer

    async def Parked(self, request: pb.ParkedRequest, context: Context) -> pb.ParkedAnswer:
        return await _answered(self._calls.parked(request), context)

    async def Learn(self, request: pb.LearnRequest, context: Context) -> pb.LearnAnswer:
        return await self._said_between(self._calls.learn(request), context)

    async def Ready(self, request: pb.ReadyRequest, context: Context) -> pb.ReadyAnswer:
        return await self._said_between(self._calls.ready(request), context)

    async def Hear(self, request: pb.HearRequest, context: Context) -> pb.HearAnswer:
        return await self._said_between(self._calls.hear(request), context)

    async def Forget(self, request: pb.ForgetRequest, context: Context) -> pb.ForgetAnswer:
        return await self._said_between(self._calls.forget(request), context)

    async def Vacant(self, request: pb.VacantRequest, context: Context) -> pb.VacantAnswer:
        return await self._said_between(self._calls.vacant(request), context)

    async def Older(self, request: pb.OlderRequest, context: Context) -> pb.OlderAnswer:
        return await self._said_between(self._calls.older(request), context)

    async def Ship(self, request: pb.ShipRequest, context: Context) -> pb.ShipAnswer:
        return await self._said_between(self._calls.ship(request), context)

    async def Take(self, request: pb.TakeRequest, context: Context) -> pb.TakeAnswer:
        return await self._said_between(self._calls.take(request), context)

    async def Read(self, request: pb.ReadRequest, context: Context) -> AsyncIterator[pb.ReadChunk]:
        try:
            async with aclosing(self._calls.read(request, identity_of(context))) as chunks:
                async for chunk in chunks:
                    yield chunk
        except UTupleError as error:
            await abort(context, error)

    async def Devices(
        self, request: pb.DevicesRequest, context: Context
    ) -> AsyncIterator[pb.Columns]:
        try:
            async with aclosing(self._calls.devices(request)) as found:
                async for columns in found:
                    yield columns
        except UTupleError as error:
            await abort(context, error)

    async def Deliver(  # type: ignore[override]
        self, request_iterator: AsyncIterator[pb.FromReader], context: Context
    ) -> None:
        """It sends by its context."""
        caller = identity_of(context)
        delivering = self._calls.deliver(request_iterator, cast(Duplex, context), caller)
        await _answered(delivering, context)

    async def _said_between(self, call: Awaitable[T], context: Context) -> T:
        """A call of another uTupleServer."""
        self._calls.from_servers += 1
        return await _answered(call, context)


async def _answered(call: Awaitable[T], context: Context) -> T:
    try:
        return await call
    except UTupleError as error:
        await abort(context, error)
        raise
