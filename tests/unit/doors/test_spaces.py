"""Spaces at a door: visitors who come at once share one, and one who goes away while it opens takes nothing from the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from utuple.doors.spaces import Spaces


@asynccontextmanager
async def silent_manager() -> AsyncIterator[str]:
    """It accepts connections and never says a word."""
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        for writer in writers:
            writer.close()
        server.close()


async def test_who_waits_for_a_space_gets_a_new_one_when_he_who_was_opening_it_goes_away() -> None:
    async with silent_manager() as manager:
        spaces = Spaces([manager], None)
        first, second = (asyncio.create_task(spaces.take(None)) for _ in range(2))
        await asyncio.wait([first], timeout=0.05)
        first.cancel()
        done, _ = await asyncio.wait([first, second], timeout=0.2)
        assert done == {first} and len(spaces) == 1
        second.cancel()
        await asyncio.wait([second])
        assert not spaces
        await spaces.close()
