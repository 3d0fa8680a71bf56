"""The client's stream of registrations over real gRPC: definite answers when it fails, hangs or breaks (law 4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest

from utuple.client.transport import GrpcTransport
from utuple.errors import OutcomeUnknown, Overloaded
from utuple.runtime.channel import bind, new_server
from utuple.server.calls.register_stream import RegisterStream
from utuple.wire import utuple_pb2 as pb

Register = Callable[[pb.RegisterRequest, float | None], Awaitable[pb.RegisterAnswer]]
LIMIT_S = 10.0


class Service:
    def __init__(self, register: Register) -> None:
        self._register = register
        self.streams = 0

    async def registering(
        self, request_iterator: AsyncIterator[pb.RegisterRequest], context: Any
    ) -> None:
        self.streams += 1
        await RegisterStream(self._submit, lambda answer: answer, context).serve()

    def _submit(
        self, request: pb.RegisterRequest, left_s: float | None
    ) -> asyncio.Future[pb.RegisterAnswer]:
        return asyncio.ensure_future(self._register(request, left_s))


async def started(register: Register, address: str = "127.0.0.1:0") -> tuple[Any, str, Service]:
    server: grpc.aio.Server = new_server()
    address = bind(server, address)
    service = Service(register)
    handler = grpc.stream_stream_rpc_method_handler(
        service.registering, pb.RegisterRequest.FromString, pb.RegisterAnswer.SerializeToString
    )
    methods = grpc.method_handlers_generic_handler("utuple.v1.Server", {"Registering": handler})
    server.add_generic_rpc_handlers((methods,))
    await server.start()
    return server, address, service


async def test_many_share_one_stream_and_each_hears_of_its_own() -> None:
    async def register(request: pb.RegisterRequest, left_s: float | None) -> pb.RegisterAnswer:
        await asyncio.sleep(0.001 * (request.number % 3))
        if request.retry:
            raise Overloaded("full", retry_after_s=0.5)
        return pb.RegisterAnswer(load=pb.Load(queued=len(request.cancels)))

    server, address, service = await started(register)
    transport = GrpcTransport()

    async def ask(size: int) -> object:
        request = pb.RegisterRequest(retry=size % 10 == 9, cancels=[pb.Cancel()] * size)
        try:
            return (await transport.register(address, request, LIMIT_S)).load.queued
        except Overloaded as error:
            return error.retry_after_s

    heard = await asyncio.gather(*map(ask, range(50)))
    assert heard == [0.5 if size % 10 == 9 else size for size in range(50)]
    assert service.streams == 1
    await transport.close()
    await server.stop(None)


async def test_one_without_an_answer_in_time_is_unknown_and_holds_nobody_up() -> None:
    async def register(request: pb.RegisterRequest, left_s: float | None) -> pb.RegisterAnswer:
        assert left_s is not None and 0 < left_s <= LIMIT_S, "the server knows how long is left"
        if request.retry:
            await asyncio.Event().wait()
        return pb.RegisterAnswer()

    server, address, service = await started(register)
    transport = GrpcTransport()
    hanging = asyncio.ensure_future(
        transport.register(address, pb.RegisterRequest(retry=True), 0.3)
    )
    await transport.register(address, pb.RegisterRequest(), LIMIT_S)
    with pytest.raises(OutcomeUnknown):
        await hanging
    gone = asyncio.ensure_future(
        transport.register(address, pb.RegisterRequest(retry=True), LIMIT_S)
    )
    await asyncio.sleep(0)
    gone.cancel()
    await transport.register(address, pb.RegisterRequest(), LIMIT_S)
    assert service.streams == 1
    await transport.close()
    await server.stop(None)


async def test_when_the_stream_breaks_what_was_sent_is_unknown_and_the_next_goes_on_a_new_one() -> (
    None
):
    async def never(request: pb.RegisterRequest, left_s: float | None) -> pb.RegisterAnswer:
        await asyncio.Event().wait()
        return pb.RegisterAnswer()

    async def at_once(request: pb.RegisterRequest, left_s: float | None) -> pb.RegisterAnswer:
        return pb.RegisterAnswer()

    server, address, service = await started(never)
    transport = GrpcTransport()
    sent = [
        asyncio.ensure_future(transport.register(address, pb.RegisterRequest(), LIMIT_S))
        for _ in range(3)
    ]
    while not service.streams:  # noqa: ASYNC110  it is on the other side of the network
        await asyncio.sleep(0.01)
    await server.stop(None)
    async with asyncio.timeout(LIMIT_S / 2):  # they hear of it before their own time is over
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown] * 3
    server, _, _ = await started(at_once, address)
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                await transport.register(address, pb.RegisterRequest(), LIMIT_S)
                break
            except Exception as error:  # noqa: BLE001  until it has noticed that the server is back
                assert type(error).__name__ in ("Unavailable", "OutcomeUnknown")
                await asyncio.sleep(0.05)
    await transport.close()
    await server.stop(None)
