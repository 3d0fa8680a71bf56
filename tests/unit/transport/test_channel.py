"""A channel and its connections, the old one and the new one."""

from __future__ import annotations

import grpc
import pytest

from utuple.transport.channel import Channel
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
    new = ClientConnection("127.0.0.1:1", 1_000, channel._changed)
    new.lost("it does not want us")
    assert channel.get_state() is Connectivity.TRANSIENT_FAILURE
    await channel.close()


async def test_a_port_that_cannot_be_is_told_to_whoever_waits() -> None:
    """asyncio raises an OverflowError for it: whatever a connecting task raises, nobody waits for ever."""
    async with Channel("127.0.0.1:70000", 1_000) as channel:
        with pytest.raises(ConnectionError, match="0-65535"):
            await channel.connected(wait=False)
