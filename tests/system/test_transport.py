"""Our transport and grpcio, either as client and as server, on real sockets: each must not notice who the other is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import grpc
import pytest

from utuple.runtime.channel import MAX_MESSAGE_BYTES, new_server, open_channel
from utuple.transport import channel as channel_module
from utuple.transport.channel import Channel
from utuple.transport.http2.frames import settings
from utuple.transport.http2.limits import CLIENT, SERVER
from utuple.transport.server import Server

LIMIT_S = 10.0
LARGE = bytes(range(256)) * 40_000
Connectivity = grpc.ChannelConnectivity
_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
]


def grpcio_server() -> grpc.aio.Server:
    return grpc.aio.server(options=_OPTIONS)


def grpcio_channel(address: str) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(address, options=_OPTIONS)


Pair = tuple[Callable[[], grpc.aio.Server], Callable[[str], grpc.aio.Channel]]
PAIRS: dict[str, Pair] = {
    "ours to ours": (new_server, open_channel),
    "grpcio to ours": (new_server, grpcio_channel),
    "ours to grpcio": (grpcio_server, open_channel),
}
each_pair = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())


class Handlers(grpc.GenericRpcHandler):
    def __init__(self) -> None:
        self.cancelled = asyncio.Event()
        self.waiting = asyncio.Event()
        self.left_s: float | None = None

    def service(self, handler_call_details: Any) -> Any:
        return {
            "/test/Say": grpc.unary_unary_rpc_method_handler(self.say),
            "/test/Thrice": grpc.unary_stream_rpc_method_handler(self.thrice),
            "/test/Echo": grpc.stream_stream_rpc_method_handler(self.echo),
            "/test/Flood": grpc.unary_stream_rpc_method_handler(self.flood),
        }.get(handler_call_details.method)

    async def say(self, request: bytes, context: Any) -> bytes:
        self.left_s = context.time_remaining()
        if request == b"abort":
            trailers = (("why-bin", b"\x00\xff"),)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "zu viel: 100 % ü", trailers)
        if request == b"bug":
            raise ValueError("a bug, says the test")
        if request == b"later":
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await asyncio.Event().wait()
        if request == b"wait":
            try:
                self.waiting.set()
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        return request

    async def thrice(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        for number in range(3):
            yield request + b"%d" % number

    async def echo(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        try:
            async for request in requests:
                yield request
        finally:
            self.cancelled.set()

    async def flood(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        for _ in range(200):
            yield LARGE


@asynccontextmanager
async def joined(pair: Pair) -> AsyncIterator[tuple[Any, Handlers, Any]]:
    handlers, server = Handlers(), pair[0]()
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with asyncio.timeout(6 * LIMIT_S), pair[1](f"127.0.0.1:{port}") as channel:
        yield channel, handlers, server
    await server.stop(None)


def say(channel: Any) -> Any:
    return channel.unary_unary("/test/Say")


async def failed(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


@each_pair
async def test_calls_of_every_kind_bring_what_was_sent(pair: Pair) -> None:
    async with joined(pair) as (channel, _, _):
        for request in (b"", b"hello", bytes(70_000), LARGE):
            assert await say(channel)(request, timeout=LIMIT_S) == request
        thrice = channel.unary_stream("/test/Thrice")
        assert [one async for one in thrice(b"a")] == [b"a0", b"a1", b"a2"]
        call = channel.stream_stream("/test/Echo")()
        for request in (b"1", LARGE, b"", b"2"):
            await call.write(request)
            assert await call.read() == request
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK
        echo = channel.stream_stream("/test/Echo")
        assert [one async for one in echo(iter([b"1", LARGE]))] == [b"1", LARGE]


@each_pair
async def test_many_calls_at_once_share_a_connection(pair: Pair) -> None:
    async with joined(pair) as (channel, _, _):
        numbers = [b"%d" % number * (1 + number % 7 * 5_000) for number in range(300)]
        assert await asyncio.gather(*map(say(channel), numbers)) == numbers


@each_pair
async def test_a_call_that_is_aborted_says_why_with_its_trailers(pair: Pair) -> None:
    async with joined(pair) as (channel, _, _):
        error = await failed(say(channel)(b"abort"))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert error.details() == "zu viel: 100 % ü"
        assert dict(error.trailing_metadata() or ())["why-bin"] == b"\x00\xff"
        assert (await failed(say(channel)(b"bug"))).code() is grpc.StatusCode.UNKNOWN
        nothing = channel.unary_unary("/test/Nothing")
        assert (await failed(nothing(b""))).code() is grpc.StatusCode.UNIMPLEMENTED
        assert await say(channel)(b"and it goes on") == b"and it goes on"


@each_pair
async def test_a_deadline_is_known_to_the_server_and_ends_the_call_on_both_sides(
    pair: Pair,
) -> None:
    async with joined(pair) as (channel, handlers, _):
        error = await failed(say(channel)(b"wait", timeout=0.3))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert handlers.left_s is not None and 0 < handlers.left_s <= 0.31, "grpcio rounds up"
        await handlers.cancelled.wait()


@each_pair
async def test_a_caller_that_goes_ends_the_call_on_the_server(pair: Pair) -> None:
    async with joined(pair) as (channel, handlers, _):
        call = channel.stream_stream("/test/Echo")()
        await call.write(b"1")
        await call.read()
        call.cancel()
        await handlers.cancelled.wait()
        handlers.cancelled.clear()
        waiting = asyncio.ensure_future(say(channel)(b"wait"))
        await handlers.waiting.wait()
        waiting.cancel()
        await handlers.cancelled.wait()


@each_pair
async def test_who_does_not_read_holds_up_nobody_else(pair: Pair) -> None:
    async with joined(pair) as (channel, _, _):
        flood = channel.unary_stream("/test/Flood")(b"")
        assert await flood.read() == LARGE
        for number in range(50):
            assert await say(channel)(b"%d" % number, timeout=LIMIT_S) == b"%d" % number
        flood.cancel()


@each_pair
async def test_a_message_larger_than_is_taken_is_refused_and_the_connection_goes_on(
    pair: Pair,
) -> None:
    if pair[1] is grpcio_channel:
        pair = (
            pair[0],
            lambda address: grpc.aio.insecure_channel(
                address, options=[("grpc.max_send_message_length", -1)]
            ),
        )
    async with joined(pair) as (channel, _, _):
        error = await failed(say(channel)(bytes(MAX_MESSAGE_BYTES + 1), timeout=LIMIT_S))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await say(channel)(b"small", timeout=LIMIT_S) == b"small"


@each_pair
async def test_a_server_that_stops_lets_calls_end_and_takes_no_more(pair: Pair) -> None:
    async with joined(pair) as (channel, _, server):
        call = channel.stream_stream("/test/Echo")()
        await call.write(b"1")
        assert await call.read() == b"1"
        stopping = asyncio.create_task(server.stop(LIMIT_S))
        await call.write(b"2")
        assert await call.read() == b"2"
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        await stopping
        code = (await failed(say(channel)(b"late", timeout=2.0))).code()
        assert code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


async def test_a_server_that_comes_back_is_found_again() -> None:
    first, handlers = new_server(), Handlers()
    first.add_generic_rpc_handlers((handlers,))
    port = first.add_insecure_port("127.0.0.1:0")
    await first.start()
    async with asyncio.timeout(LIMIT_S), open_channel(f"127.0.0.1:{port}") as channel:
        assert await say(channel)(b"1") == b"1"
        waiting = asyncio.ensure_future(say(channel)(b"wait"))
        await handlers.waiting.wait()
        await first.stop(None)
        assert (await failed(waiting)).code() is grpc.StatusCode.UNAVAILABLE
        error = await failed(say(channel)(b"2"))
        assert channel_module.NEVER_CONNECTED in (error.details() or "")
        second = new_server()
        second.add_generic_rpc_handlers((handlers,))
        second.add_insecure_port(f"127.0.0.1:{port}")
        await second.start()
        assert await say(channel)(b"3", wait_for_ready=True) == b"3"
        await second.stop(None)


async def test_who_listens_and_says_nothing_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel_module, "CONNECT_LIMIT_S", 0.2)
    mute = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    address = "{}:{}".format(*mute.sockets[0].getsockname())
    async with asyncio.timeout(LIMIT_S), open_channel(address) as channel:
        error = await failed(say(channel)(b""))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert channel.get_state() is Connectivity.TRANSIENT_FAILURE
    mute.close()


async def test_a_deadline_holds_also_with_a_server_that_knows_of_none() -> None:
    async def settings_and_nothing_else(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(settings({}))

    mute = await asyncio.start_server(settings_and_nothing_else, "127.0.0.1", 0)
    address = "{}:{}".format(*mute.sockets[0].getsockname())
    async with asyncio.timeout(LIMIT_S), open_channel(address) as channel:
        error = await failed(say(channel)(b"", timeout=0.2))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    mute.close()


@pytest.mark.parametrize("is_client", [True, False], ids=["by the client", "by the server"])
async def test_a_peer_that_is_cut_off_without_a_word_is_noticed(is_client: bool) -> None:
    pair: Pair = (
        lambda: Server(
            MAX_MESSAGE_BYTES, limits=replace(SERVER, keepalive_s=0.1, keepalive_timeout_s=0.3)
        ),
        lambda address: Channel(
            address,
            MAX_MESSAGE_BYTES,
            limits=replace(CLIENT, keepalive_s=0.1, keepalive_timeout_s=0.3),
        ),
    )
    async with joined(pair) as (channel, handlers, server):
        assert await say(channel)(b"later") == b"later", "a peer that answers pings is left alone"
        waiting = asyncio.ensure_future(say(channel)(b"wait"))
        await handlers.waiting.wait()
        (servers_own,) = server.connections
        cut_off(servers_own if is_client else channel.connection_if_ready)
        if is_client:
            error = await failed(waiting)
            assert error.code() is grpc.StatusCode.UNAVAILABLE
            assert "does not answer" in (error.details() or "")
        else:
            await handlers.cancelled.wait()
            waiting.cancel()


def cut_off(connection: Any) -> None:
    """As if its network were gone: nothing comes or goes, not even its end."""
    connection.data_received = connection.write = connection.abort = lambda data: None


async def test_calls_beyond_what_a_server_takes_at_a_time_wait_for_their_turn() -> None:
    few = replace(SERVER, streams_per_connection=3)
    pair: Pair = (lambda: Server(MAX_MESSAGE_BYTES, limits=few), open_channel)
    async with joined(pair) as (channel, handlers, _):
        assert await say(channel)(b"first", timeout=LIMIT_S) == b"first", "its settings are known"
        waiting = [asyncio.ensure_future(say(channel)(b"wait")) for _ in range(3)]
        await handlers.waiting.wait()
        late = asyncio.ensure_future(say(channel)(b"late", timeout=0.2))
        assert (await failed(late)).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        queued = [
            asyncio.ensure_future(say(channel)(b"%d" % n, timeout=LIMIT_S)) for n in range(20)
        ]
        waiting[0].cancel()
        assert await asyncio.gather(*queued) == [b"%d" % n for n in range(20)]
        for one in waiting:
            one.cancel()
