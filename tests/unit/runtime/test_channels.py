"""A program's pool of channels: one an address, closed when nobody needs it."""

from __future__ import annotations

import asyncio

import grpc

from utuple.runtime.channels import Channels

SHUTDOWN = grpc.ChannelConnectivity.SHUTDOWN
LIMIT_S = 5.0


async def closed(channel: grpc.aio.Channel) -> None:
    async with asyncio.timeout(LIMIT_S):
        while (state := channel.get_state()) is not SHUTDOWN:
            await channel.wait_for_state_change(state)


async def test_calls_to_one_address_share_a_channel_until_it_is_not_kept() -> None:
    channels = Channels()
    one, other = channels.get("127.0.0.1:1"), channels.get("127.0.0.1:2")
    assert channels.get("127.0.0.1:1") is one and one is not other
    await channels.keep_only(["127.0.0.1:2"])
    assert one.get_state() is SHUTDOWN and other.get_state() is not SHUTDOWN
    assert channels.get("127.0.0.1:1") is not one
    await channels.close()
    assert other.get_state() is SHUTDOWN


async def test_a_channel_is_closed_when_it_was_idle_for_so_long_and_not_while_it_is_borrowed() -> (
    None
):
    channels = Channels(idle_s=0.0)
    async with channels.borrowed("127.0.0.1:1") as channel:
        async with channels.borrowed("127.0.0.1:1") as same:
            assert same is channel
        for _ in range(5):
            await asyncio.sleep(0)
        assert channel.get_state() is not SHUTDOWN, "the first has it still"
    await closed(channel)
    async with channels.borrowed("127.0.0.1:1") as new:
        assert new is not channel
    await channels.close()


async def test_no_good_answer_is_none() -> None:
    channels = Channels()

    async def refuse(channel: grpc.aio.Channel) -> bytes:
        none = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, none, none, "gone")

    assert await channels.answer("127.0.0.1:1", refuse) is None
    await channels.close()
