"""A channel and its connections, the old one and the new one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import grpc
import pytest

from tests.unit.transport.rfc9113 import MOST_BYTES, Wire
from utuple.transport import channel as channel_module
from utuple.transport.calls import Call, Method
from utuple.transport.channel import Channel
from utuple.transport.http2.frames import HEADERS, PREFACE, FrameReader, settings
from utuple.transport.outbound import ClientConnection

Connectivity = grpc.ChannelConnectivity


async def test_an_old_connection_that_ends_does_not_end_the_one_that_is_being_made() -> None:
    """A server that stops says so first and hangs up later: meanwhile its successor is being asked."""
    channel = Channel("127.0.0.1:1", 1_000)
    old = ClientConnection("127.0.0.1:1", 1_000, channel._changed)
    old.is_ready = old.is_leaving = True
    channel._enter(Connectivity.CONNECTING)
    old.lost("it has gone")
    assert channel.get_state() is Connectivity.CONNECTING
    new = channel._connection = ClientConnection("127.0.0.1:1", 1_000, channel._changed)
    new.lost("it does not want us")
    assert channel.get_state() is Connectivity.TRANSIENT_FAILURE
    await channel.close()


async def test_a_port_that_cannot_be_is_told_to_whoever_waits() -> None:
    """asyncio raises an OverflowError for it: whatever a connecting task raises, nobody waits for ever."""
    async with Channel("127.0.0.1:70000", 1_000) as channel:
        with pytest.raises(ConnectionError, match="0-65535"):
            await channel.connected(wait=False)


class Ready:
    """A channel that is connected."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.connection_if_ready = ClientConnection("127.0.0.1:1", 1_000, lambda _: None)
        self.connection_if_ready.connection_made(cast(Any, self.wire))
        self.connection_if_ready.data_received(settings({}))


async def test_calls_with_one_time_out_say_the_same_every_time() -> None:
    """A server reads headers that it knows once: what is left of the time, to the microsecond, would be new with each call."""
    channel, method = Ready(), Method("/a.B/C", bytes, bytes, asks_once=True)
    for _ in range(2):
        Call(cast(Any, channel), method, b"x", 5.0, False)
    said = FrameReader(MOST_BYTES).feed(bytes(channel.wire.written)[len(PREFACE) :])
    first, second = (bytes(one.payload) for one in said if one.kind == HEADERS)
    assert first == second and b"5000000u" in first


@pytest.mark.parametrize("limit_s", [0.0, 60.0], ids=["too late", "closed"])
async def test_a_connection_that_is_given_up_while_it_is_made_is_ended(
    monkeypatch: pytest.MonkeyPatch, limit_s: float
) -> None:
    """The loop was busy: the connection was made, and its keepalive began, when the time to connect was over. uvloop closes the
    socket without a word to the protocol, and the next ping would be written to nothing."""
    wire, made = Wire(), asyncio.Event()

    async def connect_late(protocol: Callable[[], asyncio.Protocol], *_: object) -> None:
        protocol().connection_made(cast(Any, wire))
        made.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", connect_late)
    monkeypatch.setattr(channel_module, "CONNECT_LIMIT_S", limit_s)
    channel = Channel("127.0.0.1:1", 1_000)
    channel.get_state(try_to_connect=True)
    await made.wait()
    if not limit_s:
        await channel.wait_for_state_change(Connectivity.CONNECTING)
        assert wire.is_closing()
    await channel.close()
    assert wire.is_closing() and b"channel was closed" not in wire.written


async def test_a_connection_that_is_ready_when_the_time_to_make_it_is_over_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a program that was busy both come in one turn of the loop: a channel that called itself ready and had thrown its
    connection away was never connected again."""
    wire, loop = Wire(), asyncio.get_running_loop()

    async def connect(protocol: Callable[[], asyncio.Protocol], *_: object) -> None:
        made = protocol()
        assert isinstance(made, ClientConnection)
        made.connection_made(cast(Any, wire))
        loop.call_soon(made.data_received, settings({}))

    monkeypatch.setattr(loop, "create_connection", connect)
    monkeypatch.setattr(channel_module, "CONNECT_LIMIT_S", 0.0)
    async with Channel("127.0.0.1:1", 1_000) as channel:
        connection = await channel.connected(wait=False)
        await asyncio.gather(channel._connecting or asyncio.sleep(0))
        assert await channel.connected(wait=False) is connection
        assert not wire.is_closing()


async def test_a_connection_that_is_ready_before_it_is_given_to_us_and_then_given_up_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """uvloop closes its socket and tells nobody: whoever wrote to it got a RuntimeError, and an sCA server died of one."""
    wires, over = [Wire(), Wire()], asyncio.Event()

    async def connect(protocol: Callable[[], asyncio.Protocol], *_: object) -> None:
        made = protocol()
        assert isinstance(made, ClientConnection)
        made.connection_made(cast(Any, wires.pop(0)))
        made.data_received(settings({}))
        if wires:
            await over.wait()
            raise TimeoutError

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", connect)
    async with Channel("127.0.0.1:1", 1_000) as channel:
        first = await channel.connected(wait=False)
        over.set()
        async with asyncio.timeout(5.0):  # its keepalive would notice much later
            await channel.wait_for_state_change(Connectivity.READY)
        assert not first.is_open
        assert await channel.connected(wait=False) is not first
