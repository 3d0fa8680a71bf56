"""TLS, metadata, the caller's certificate, and calls that are refused or ended from outside: ours and grpcio, on real sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest

from tests.system.test_transport import LIMIT_S, failed, say
from utuple.runtime.channel import open_channel
from utuple.security.authority import Authority, new_authority
from utuple.security.credentials import Credentials
from utuple.security.identity import Identity, Role
from utuple.transport.context import Aborted, Context
from utuple.transport.http2.limits import SERVER, Limits
from utuple.transport.peer import Peer, Tls
from utuple.transport.server import Authorise, Server
from utuple.transport.status import Status

NOW_US = int(time.time() * 1e6)
DAY_US = 86_400_000_000
MOST_BYTES = 8 << 20
DEVICE = Identity("here", Role.DEVICE, "truck-17")
PROGRAM = Identity("here", Role.PROGRAM, "server-1")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return new_authority("here", NOW_US)


@pytest.fixture(scope="module")
def program(authority: Authority) -> Credentials:
    return authority.issue(PROGRAM, 30, ["localhost", "127.0.0.1"], NOW_US)


@pytest.fixture(scope="module")
def device(authority: Authority) -> Credentials:
    return authority.issue(DEVICE, 30, now_us=NOW_US)


class Told(grpc.GenericRpcHandler):
    """Its handlers say what they were told."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.contexts: list[Context] = []

    def service(self, handler_call_details: Any) -> Any:
        return {
            "/test/Say": grpc.unary_unary_rpc_method_handler(self.say),
            "/test/Watch": grpc.unary_stream_rpc_method_handler(self.watch),
        }.get(handler_call_details.method)

    async def say(self, request: bytes, context: Any) -> bytes:
        self.contexts.append(context)
        if request == b"metadata":
            await context.send_initial_metadata((("first", "1"), ("raw-bin", b"\x00\xff")))
            context.set_trailing_metadata((("last", "2"),))
        return request

    async def watch(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        self.contexts.append(context)
        try:
            yield request
            await asyncio.Event().wait()
        finally:
            self.ended.set()


def listening(credentials: Credentials) -> Tls:
    return Tls(credentials.server_context)


def calling(credentials: Credentials, check: Callable[[Peer], None] | None = None) -> Tls:
    return Tls(credentials.client_context, check)


@asynccontextmanager
async def serving(
    tls: Tls | None = None, authorise: Authorise | None = None, limits: Limits = SERVER
) -> AsyncIterator[tuple[Server, str, Told]]:
    server, told = Server(MOST_BYTES, authorise, limits), Told()
    server.add_generic_rpc_handlers((told,))
    where = "127.0.0.1:0"
    port = server.add_insecure_port(where) if tls is None else server.add_secure_port(where, tls)
    await server.start()
    async with asyncio.timeout(3 * LIMIT_S):
        yield server, f"127.0.0.1:{port}", told
    await server.stop(None)


def grpcio_channel(address: str, credentials: Credentials) -> grpc.aio.Channel:
    trusted = "".join(credentials.authorities_pem).encode()
    given = grpc.ssl_channel_credentials(
        trusted, credentials.key_pem.encode(), credentials.certificate_pem.encode()
    )
    return grpc.aio.secure_channel(address, given)


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "grpcio"])
async def test_over_tls_the_handler_knows_the_caller_s_certificate_and_address(
    program: Credentials, device: Credentials, is_ours: bool
) -> None:
    async with serving(listening(program)) as (_, address, told):
        opened = (
            open_channel(address, calling(device)) if is_ours else grpcio_channel(address, device)
        )
        async with opened as channel:
            for request in (b"", b"hello", bytes(3 << 20)):
                assert await say(channel)(request, timeout=LIMIT_S) == request
        caller = told.contexts[0].caller
        assert caller.is_secure and caller.certificate_der and caller.host == "127.0.0.1"
        assert caller.certificate is not None
        assert ("URI", DEVICE.uri) in caller.certificate["subjectAltName"]
        assert told.contexts[0].peer() == f"ipv4:{caller.address}"


async def test_metadata_travels_both_ways_with_every_client(
    program: Credentials, device: Credentials
) -> None:
    given = (("who", "me"), ("raw-bin", b"\x01\xfe"))
    async with serving(listening(program)) as (_, address, told):
        for opened in (open_channel(address, calling(device)), grpcio_channel(address, device)):
            async with opened as channel:
                call = say(channel)(b"metadata", metadata=given, timeout=LIMIT_S)
                assert await call == b"metadata"
                assert told.contexts[-1].invocation_metadata() == given
                first = dict(await call.initial_metadata())
                assert first["first"] == "1" and first["raw-bin"] == b"\x00\xff"
                assert dict(await call.trailing_metadata())["last"] == "2"


async def test_who_has_no_certificate_or_that_of_another_cluster_is_refused_and_told_so(
    program: Credentials, authority: Authority
) -> None:
    stranger = new_authority("here", NOW_US).issue(DEVICE, 30, now_us=NOW_US)
    theirs = stranger.trusting(authority.certificate_pem.decode())
    expired = authority.issue(DEVICE, 1, now_us=NOW_US - 3 * DAY_US)
    async with serving(listening(program)) as (_, address, told):
        for credentials, said in ((theirs, "unknown ca"), (expired, "certificate expired")):
            async with open_channel(address, calling(credentials)) as channel:
                error = await failed(say(channel)(b"", timeout=LIMIT_S))
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                assert said in str(error.details()).lower()
        async with open_channel(address) as channel:
            error = await failed(say(channel)(b"", timeout=LIMIT_S))
            assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert not told.contexts


async def test_a_server_that_is_not_the_one_meant_hears_nothing(
    program: Credentials, device: Credentials
) -> None:
    def never(peer: Peer) -> None:
        assert peer.certificate is not None
        raise ValueError("this is server-1, not server-2")

    async with serving(listening(program)) as (_, address, told):
        async with open_channel(address, calling(device, never)) as channel:
            error = await failed(say(channel)(b"", timeout=LIMIT_S))
        assert "this is server-1, not server-2" in str(error.details())
        assert not told.contexts


async def test_certificates_are_renewed_while_the_server_runs(
    authority: Authority, program: Credentials, device: Credentials
) -> None:
    shown: list[bytes] = []
    now = [program]

    def note(peer: Peer) -> None:
        assert peer.certificate_der is not None
        shown.append(peer.certificate_der)

    tls = Tls(lambda: now[0].server_context())
    async with serving(tls) as (_, address, _):
        for _ in range(2):
            async with open_channel(address, calling(device, note)) as channel:
                assert await say(channel)(b"1", timeout=LIMIT_S) == b"1"
            now[0] = authority.issue(PROGRAM, 30, now_us=NOW_US + 1)
    assert len(set(shown)) == 2


async def test_every_call_is_authorised_before_its_handler_runs() -> None:
    asked: list[str] = []

    def authorise(method: str, context: Context) -> None:
        asked.append(method)
        if dict(context.invocation_metadata()).get("who") == "bug":
            raise KeyError("who")
        if dict(context.invocation_metadata()).get("who") != "friend":
            raise Aborted(Status(grpc.StatusCode.PERMISSION_DENIED, "not you", (("why", "so"),)))

    async with serving(None, authorise) as (_, address, told), open_channel(address) as channel:
        error = await failed(say(channel)(b"", timeout=LIMIT_S))
        assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        assert error.details() == "not you"
        assert dict(error.trailing_metadata() or ())["why"] == "so"
        broken = await failed(say(channel)(b"", metadata=(("who", "bug"),), timeout=LIMIT_S))
        assert broken.code() is grpc.StatusCode.INTERNAL, "a bug lets nobody in"
        assert not told.contexts
        friend = (("who", "friend"),)
        assert await say(channel)(b"hello", metadata=friend, timeout=LIMIT_S) == b"hello"
        watch: Any = channel.unary_stream("/test/Watch")
        assert (await failed(watch(b"").read())).code() is grpc.StatusCode.PERMISSION_DENIED
        assert asked == ["/test/Say"] * 3 + ["/test/Watch"]


async def test_streams_are_ended_from_outside_and_others_go_on() -> None:
    async with serving() as (server, address, told), open_channel(address) as channel:
        watch: Any = channel.unary_stream("/test/Watch")
        stays = watch(b"", metadata=(("who", "stays"),))
        goes = watch(b"", metadata=(("who", "goes"),))
        assert await stays.read() == await goes.read() == b""
        revoked = Status(grpc.StatusCode.UNAUTHENTICATED, "revoked")
        chosen = ("who", "goes")
        assert server.end_calls(lambda one: chosen in one.invocation_metadata(), revoked) == 1
        error = await failed(goes.read())
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        await told.ended.wait()
        assert not stays.done()


@pytest.mark.parametrize("with_tls", [True, False], ids=["tls", "plain"])
async def test_who_does_not_finish_the_handshake_in_time_is_hung_up_on(
    program: Credentials, with_tls: bool
) -> None:
    limits = replace(SERVER, handshake_s=0.2)
    tls = listening(program) if with_tls else None
    async with serving(tls, limits=limits) as (_, address, _):
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"\x16\x03\x01" if with_tls else b"PRI * HTTP")
        async with asyncio.timeout(LIMIT_S):
            await reader.read()
        writer.close()
