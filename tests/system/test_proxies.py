"""A server of ours behind nginx, HAProxy and Envoy, called by grpcio's client and by ours: nobody notices the proxy. Skipped where
they are not installed; `make proxies` installs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.system.proxies import PROXIES, program_of, running
from tests.system.test_transport import LIMIT_S, Handlers, failed, grpcio_channel, say
from utuple.runtime.channel import bind, new_server, open_channel

CLIENTS: dict[str, Callable[[str], grpc.aio.Channel]] = {
    "ours": open_channel,
    "grpcio": grpcio_channel,
}
each_client = pytest.mark.parametrize("open_", CLIENTS.values(), ids=CLIENTS.keys())
each_proxy = pytest.mark.parametrize(
    "proxy",
    [
        pytest.param(name, marks=pytest.mark.skipif(program_of(name) is None, reason=f"no {name}"))
        for name in PROXIES
    ],
)


@asynccontextmanager
async def behind(
    proxy: str, place: Path, open_: Callable[[str], grpc.aio.Channel]
) -> AsyncIterator[tuple[Any, Handlers, Any]]:
    server, handlers = new_server(), Handlers()
    server.add_generic_rpc_handlers((handlers,))
    upstream = bind(server, "127.0.0.1:0")
    await server.start()
    async with (
        asyncio.timeout(6 * LIMIT_S),
        running(proxy, place, upstream) as address,
        open_(address) as channel,
    ):
        yield channel, handlers, server
    await server.stop(None)


@each_client
@each_proxy
async def test_calls_of_every_kind_bring_what_was_sent(
    proxy: str, tmp_path: Path, open_: Callable[[str], grpc.aio.Channel]
) -> None:
    async with behind(proxy, tmp_path, open_) as (channel, _, _):
        for request in (b"", b"hello", bytes(70_000), bytes(3 << 20)):
            assert await say(channel)(request, timeout=LIMIT_S) == request
        thrice = channel.unary_stream("/test/Thrice")
        assert [one async for one in thrice(b"a")] == [b"a0", b"a1", b"a2"]
        call = channel.stream_stream("/test/Echo")()
        for request in (b"1", bytes(300_000), b"", b"2"):
            await call.write(request)
            assert await call.read() == request
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        numbers = [b"%d" % number * 2_000 for number in range(60)]
        assert await asyncio.gather(*map(say(channel), numbers)) == numbers


@each_client
@each_proxy
async def test_errors_deadlines_and_cancellations_pass_through(
    proxy: str, tmp_path: Path, open_: Callable[[str], grpc.aio.Channel]
) -> None:
    async with behind(proxy, tmp_path, open_) as (channel, handlers, _):
        error = await failed(say(channel)(b"abort", timeout=LIMIT_S))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert error.details() == "zu viel: 100 % ü"
        assert dict(error.trailing_metadata() or ())["why-bin"] == b"\x00\xff"
        late = await failed(say(channel)(b"wait", timeout=0.5))
        assert late.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await handlers.cancelled.wait()
        handlers.cancelled.clear()
        call = channel.stream_stream("/test/Echo")()
        await call.write(b"1")
        assert await call.read() == b"1"
        call.cancel()
        await handlers.cancelled.wait()


@each_proxy
async def test_a_server_that_is_gone_is_unavailable_to_our_client(
    proxy: str, tmp_path: Path
) -> None:
    async with behind(proxy, tmp_path, open_channel) as (channel, _, server):
        assert await say(channel)(b"here", timeout=LIMIT_S) == b"here"
        await server.stop(None)
        error = await failed(say(channel)(b"gone", timeout=LIMIT_S))
        assert error.code() is grpc.StatusCode.UNAVAILABLE, error.details()
