"""The seam to the network: calls in, answers or our errors out. `GrpcTransport` is the real one; tests
have a twin.

    Unavailable      the call was never sent, or the server said so: nothing was registered
    OutcomeUnknown   it was sent and no answer came
    others           as the server said (utuple.wire.status)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol, TypeVar, cast

import grpc

from utuple.client.connections import Connections
from utuple.errors import (
    Closed,
    OutcomeUnknown,
    Unavailable,
    UnknownHost,
    UTupleError,
    WrongContext,
)
from utuple.model.columns import MICROSECONDS
from utuple.runtime.tasks import Tasks
from utuple.runtime.trust.refusal import why_not_connected
from utuple.security.own import OwnCredentials
from utuple.transport.calls import Call
from utuple.transport.channel import Channel
from utuple.transport.http2.headers import Metadata
from utuple.wire import utuple_pb2 as pb
from utuple.wire.status import error_described, error_from
from utuple.wire.utuple_pb2_grpc import AssignmentStub, ScaStub, ServerStub

T = TypeVar("T")

CONNECT_S = 3.0
"""A server that is not connected within this is treated as unreachable: it does not answer."""

_NEVER_SENT = "failed to connect to all addresses"


class Stream(Protocol):
    """One Deliver stream."""

    async def send(self, message: pb.FromReader) -> None: ...

    async def receive_all(self, handle: Callable[[pb.ToReader], None]) -> None:
        """Give each message to `handle` as it comes, until the server has ended the stream. Raises what `handle` does."""

    def cancel(self) -> None: ...


class Transport(Protocol):
    def expect(self, address: str, name: str) -> None:
        """The program of this name is said to be there: whoever else answers there is not spoken to."""

    async def lookup(
        self, address: str, request: pb.LookupRequest, timeout_s: float
    ) -> pb.LookupAnswer: ...

    def register(
        self, address: str, request: pb.RegisterRequest, timeout_s: float
    ) -> Awaitable[pb.RegisterAnswer]:
        """What can leave at once has left when this returns."""

    async def command(
        self, address: str, request: pb.CommandRequest, timeout_s: float
    ) -> pb.CommandAnswer: ...

    async def commanded(
        self, address: str, request: pb.CommandedRequest, timeout_s: float
    ) -> pb.CommandedAnswer: ...

    def read(self, address: str, request: pb.ReadRequest) -> AsyncGenerator[pb.ReadChunk, None]: ...

    async def sca_register(
        self, address: str, request: pb.ScaRegisterRequest, timeout_s: float
    ) -> pb.ScaRegisterAnswer: ...

    async def sca_command(
        self, address: str, request: pb.SimpleCommands, timeout_s: float
    ) -> pb.SimpleReceipts: ...

    async def deliver(self, address: str, *, sca: bool) -> Stream: ...

    async def close(self) -> None: ...


class OwnLoop:
    """The event loop that a space belongs to: the one it is first used in. Its connections and tasks live there and nowhere
    else."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def check(self) -> None:
        """Raises in any other loop, at once: there an answer would never be heard of."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            ended = ", which has ended" if self._loop.is_closed() else ""
            raise WrongContext(
                f"this space belongs to another event loop{ended}: connect one in each `asyncio.run`, or use "
                "`utuple.blocking`, whose spaces serve any thread"
            )
        self._loop = loop


class _Peer:
    """A channel and its stubs, made once."""

    def __init__(self, channel: Channel, shown: Metadata) -> None:
        self.channel = channel
        asking = cast(grpc.aio.Channel, channel.showing(shown) if shown else channel)
        self.server = ServerStub(asking)
        self.sca = ScaStub(asking)
        self.assignment = AssignmentStub(asking)
        self._registrations: _Registrations | None = None

    @property
    def is_ready(self) -> bool:
        return self.channel.get_state() is grpc.ChannelConnectivity.READY

    @property
    def registrations(self) -> _Registrations:
        """One that is open. A stream that broke is not used again."""
        if self._registrations is None or self._registrations.is_over:
            self._registrations = _Registrations(cast(Call, self.server.Registering()))
        return self._registrations

    async def close(self) -> None:
        if self._registrations is not None:
            await self._registrations.close()


class GrpcTransport:
    def __init__(
        self,
        own: OwnCredentials | None = None,
        shared: Connections | None = None,
        shown: Metadata = (),
    ) -> None:
        """`own`: the credentials to act with; without them nothing is secured. `shared`: connections of a door, which outlive
        this; `shown` goes with every call, and says whom the door speaks for."""
        self._connections = shared or Connections(own)
        self._is_shared = shared is not None
        self._shown = shown
        self._peers: dict[str, _Peer] = {}
        self._closed = False

    def expect(self, address: str, name: str) -> None:
        self._connections.expect(address, name)

    async def lookup(
        self, address: str, request: pb.LookupRequest, timeout_s: float
    ) -> pb.LookupAnswer:
        peer, left_s = await self._connected(address, timeout_s)
        return await _answer(peer.assignment.Lookup(request, timeout=left_s), "lookup")

    def register(
        self, address: str, request: pb.RegisterRequest, timeout_s: float
    ) -> Awaitable[pb.RegisterAnswer]:
        peer = self._peers.get(address)
        if peer is not None and peer.is_ready:
            return peer.registrations.register(request, timeout_s)
        return self._register_later(address, request, timeout_s)

    async def _register_later(
        self, address: str, request: pb.RegisterRequest, timeout_s: float
    ) -> pb.RegisterAnswer:
        peer, left_s = await self._connected(address, timeout_s)
        return await peer.registrations.register(request, left_s)

    async def command(
        self, address: str, request: pb.CommandRequest, timeout_s: float
    ) -> pb.CommandAnswer:
        peer, left_s = await self._connected(address, timeout_s)
        return await _answer(peer.server.Command(request, timeout=left_s), "command")

    async def commanded(
        self, address: str, request: pb.CommandedRequest, timeout_s: float
    ) -> pb.CommandedAnswer:
        peer, left_s = await self._connected(address, timeout_s)
        return await _answer(peer.server.Commanded(request, timeout=left_s), "commanded")

    async def sca_register(
        self, address: str, request: pb.ScaRegisterRequest, timeout_s: float
    ) -> pb.ScaRegisterAnswer:
        peer, left_s = await self._connected(address, timeout_s)
        return await _answer(peer.sca.Register(request, timeout=left_s), "register")

    async def sca_command(
        self, address: str, request: pb.SimpleCommands, timeout_s: float
    ) -> pb.SimpleReceipts:
        peer, left_s = await self._connected(address, timeout_s)
        return await _answer(peer.sca.Command(request, timeout=left_s), "command")

    async def read(
        self, address: str, request: pb.ReadRequest
    ) -> AsyncGenerator[pb.ReadChunk, None]:
        peer, _ = await self._connected(address, CONNECT_S)
        call = peer.server.Read(request)
        try:
            async for chunk in call:
                yield chunk
        except grpc.aio.AioRpcError as error:
            raise _meaning(error, "read") from None
        finally:
            call.cancel()

    async def deliver(self, address: str, *, sca: bool) -> Stream:
        peer, _ = await self._connected(address, CONNECT_S)
        call = peer.sca.Deliver() if sca else peer.server.Deliver()
        return _GrpcStream(cast(Call, call))

    async def close(self) -> None:
        self._closed = True
        peers, self._peers = list(self._peers.values()), {}
        await asyncio.gather(*(peer.close() for peer in peers))
        if not self._is_shared:
            await self._connections.close()

    async def _connected(self, address: str, timeout_s: float) -> tuple[_Peer, float]:
        """A peer that is connected, so that a failure after this is one of a call that was sent; and what is left of the
        time for that call."""
        if self._closed:
            raise Closed("this space is closed")
        peer = self._peers.get(address)
        if peer is None:
            peer = self._peers[address] = _Peer(self._connections.get(address), self._shown)
        channel = peer.channel
        state = channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.READY:
            return peer, timeout_s
        began_s = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(CONNECT_S, timeout_s)):
                while state is not grpc.ChannelConnectivity.READY:
                    if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        if channel.is_unknown_host:
                            raise UnknownHost("there is no such host")
                        if channel.is_silent:
                            raise Unavailable(f"{address} does not answer")
                        raise why_not_connected(channel, address, self._connections.own)
                    await channel.wait_for_state_change(state)
                    state = channel.get_state(try_to_connect=True)
        except TimeoutError:
            raise Unavailable(f"{address} does not answer") from None
        return peer, max(0.0, timeout_s - (asyncio.get_running_loop().time() - began_s))


class _Registrations:
    """One stream to one server for all its registrations: they leave in the order they came, and each is answered by
    its number. When it breaks, what was not answered may or may not be registered."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._answers: dict[int, asyncio.Future[pb.RegisterAnswer]] = {}
        self._last = 0
        self._receiving = Tasks().start(self._receive(), "reader of answers")

    @property
    def is_over(self) -> bool:
        return self._receiving.done()

    def register(
        self, request: pb.RegisterRequest, timeout_s: float
    ) -> Awaitable[pb.RegisterAnswer]:
        loop = asyncio.get_running_loop()
        self._last = request.number = self._last + 1
        answered: asyncio.Future[pb.RegisterAnswer] = loop.create_future()
        self._answers[request.number] = answered
        request.limit_us = max(1, round(timeout_s * MICROSECONDS))
        self._call.send(
            request
        )  # what has no room yet is queued: the lanes limit how much that can be
        timer = loop.call_later(timeout_s, _too_late, answered)
        return self._answer(request.number, answered, timer)

    async def _answer(
        self,
        number: int,
        answered: asyncio.Future[pb.RegisterAnswer],
        timer: asyncio.TimerHandle,
    ) -> pb.RegisterAnswer:
        try:
            answer = await answered
        finally:
            timer.cancel()
            self._answers.pop(number, None)
        if answer.failure:
            raise error_described(answer.failure, sent="register")
        return answer

    async def _receive(self) -> None:
        error: UTupleError = OutcomeUnknown("register: the stream has ended")
        try:
            await self._call.receive_all(self._answered)
        except grpc.aio.AioRpcError as broken:
            error = _meaning(broken, "register")
        finally:
            for waiting in self._answers.values():
                if not waiting.done():
                    waiting.set_exception(error)

    def _answered(self, answer: pb.RegisterAnswer) -> None:
        waiting = self._answers.pop(answer.number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def close(self) -> None:
        self._call.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)


def _too_late(answered: asyncio.Future[pb.RegisterAnswer]) -> None:
    if not answered.done():
        answered.set_exception(OutcomeUnknown("register: no answer in time"))


class _GrpcStream:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def send(self, message: pb.FromReader) -> None:
        try:
            await self._call.write(message)
        except grpc.aio.AioRpcError as error:
            raise _meaning(error, "deliver") from None
        except asyncio.InvalidStateError:
            raise OutcomeUnknown("the stream has ended") from None

    async def receive_all(self, handle: Callable[[pb.ToReader], None]) -> None:
        try:
            await self._call.receive_all(handle)
        except grpc.aio.AioRpcError as error:
            raise _meaning(error, "deliver") from None

    def cancel(self) -> None:
        self._call.cancel()


async def _answer(call: Awaitable[T], sent: str) -> T:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise _meaning(error, sent) from None


def _meaning(error: grpc.aio.AioRpcError, sent: str) -> UTupleError:
    meaning = error_from(error, sent=sent)
    if isinstance(meaning, OutcomeUnknown) and _NEVER_SENT in (error.details() or ""):
        return Unavailable(str(meaning))
    return meaning
