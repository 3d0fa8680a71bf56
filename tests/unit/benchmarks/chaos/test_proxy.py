"""The proxy carries, and cuts, stalls, slows and mends when told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from benchmarks.chaos.proxy import Proxy
from benchmarks.chaos.schedule import Way

HOST = "127.0.0.1"
LIMIT_S = 10.0
SILENT_S = 0.1

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(1000):
        writer.write(piece.upper())
    writer.close()


@asynccontextmanager
async def proxied() -> AsyncIterator[Proxy]:
    """Before a program that answers in capitals."""
    server = await asyncio.start_server(echo, HOST, 0)
    proxy = Proxy(HOST, 0, server.sockets[0].getsockname()[1])
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
        server.close()


async def connected(proxy: Proxy) -> Ends:
    return await asyncio.open_connection(HOST, proxy.port)


async def said(ends: Ends, text: bytes) -> bytes:
    """The answer."""
    reader, writer = ends
    writer.write(text)
    async with asyncio.timeout(LIMIT_S):
        return await reader.readexactly(len(text))


async def is_silent(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(SILENT_S):
            await reader.readexactly(1)
    except TimeoutError:
        return True
    return False


async def is_broken(ends: Ends) -> bool:
    try:
        return await said(ends, b"x") == b""
    except (asyncio.IncompleteReadError, ConnectionError):
        return True


async def test_it_carries_both_ways() -> None:
    async with proxied() as proxy:
        one, other = await connected(proxy), await connected(proxy)
        assert await said(one, b"abc") == b"ABC"
        assert await said(other, b"d" * 300_000) == b"D" * 300_000


async def test_a_cut_breaks_what_is_open_and_refuses_what_comes_until_it_is_mended() -> None:
    async with proxied() as proxy:
        ends = await connected(proxy)
        assert await said(ends, b"abc") == b"ABC"
        port = proxy.port
        proxy.cut()
        assert await is_broken(ends)
        with pytest.raises(ConnectionRefusedError):
            await connected(proxy)
        await proxy.mend()
        assert proxy.port == port
        assert await said(await connected(proxy), b"abc") == b"ABC"


@pytest.mark.parametrize("way", list(Way))
async def test_a_stalled_connection_is_silent_and_loses_nothing(way: Way) -> None:
    async with proxied() as proxy:
        ends = await connected(proxy)
        assert await said(ends, b"abc") == b"ABC"
        proxy.stall(way)
        ends[1].write(b"def")
        assert await is_silent(ends[0])
        await proxy.mend()
        async with asyncio.timeout(LIMIT_S):
            assert await ends[0].readexactly(3) == b"DEF"


async def test_a_slow_connection_is_late() -> None:
    loop = asyncio.get_running_loop()
    async with proxied() as proxy:
        ends = await connected(proxy)
        proxy.slow(0.1)
        began_s = loop.time()
        assert await said(ends, b"abc") == b"ABC"
        assert loop.time() - began_s >= 0.2, "each way"


async def test_a_dead_program_breaks_the_connection() -> None:
    async with proxied() as proxy:
        gone = Proxy(HOST, 0, 1)  # nothing listens on port 1
        await gone.open()
        assert await is_broken(await connected(gone))
        await gone.close()
        assert await said(await connected(proxy), b"abc") == b"ABC"


async def test_an_end_on_one_side_is_an_end_on_the_other_after_all_that_was_sent() -> None:
    async def farewell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 500_000)
        writer.close()

    server = await asyncio.start_server(farewell, HOST, 0)
    proxy = Proxy(HOST, 0, server.sockets[0].getsockname()[1])
    await proxy.open()
    reader, _ = await connected(proxy)
    async with asyncio.timeout(LIMIT_S):
        assert len(await reader.read()) == 500_000
    await proxy.close()
    server.close()
