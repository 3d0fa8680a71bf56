"""A `read` as its caller sees it: accepted, and the rows that were found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from tests.unit.server.test_engine import FAMILY, LIMIT_S, ef, engine_on, events
from utuple.server.calls import ServerCalls
from utuple.store.contract import Batch, Search
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import templated_to_wire


class SlowStore(MemoryStore):
    """Finds nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_find = asyncio.Event()

    async def search(self, search: Search) -> AsyncGenerator[Batch, None]:
        await self.may_find.wait()
        async for batch in super().search(search):
            yield batch


def request() -> pb.ReadRequest:
    return pb.ReadRequest(template=templated_to_wire(ef(9), {FAMILY: 1}))


async def test_what_is_found_at_once_comes_with_the_word_that_the_read_was_accepted() -> None:
    engine = await engine_on(MemoryStore())
    await engine.register(events(1, 2))
    chunks = [chunk async for chunk in ServerCalls(engine, "here").read(request())]
    assert [len(chunk.columns.ids) // 16 for chunk in chunks] == [2]
    await engine.stop()


async def test_a_read_that_finds_nothing_is_accepted() -> None:
    engine = await engine_on(MemoryStore())
    chunks = [chunk async for chunk in ServerCalls(engine, "here").read(request())]
    assert [len(chunk.columns.ids) for chunk in chunks] == [0]
    assert not chunks[0].refusals
    await engine.stop()


async def test_a_long_search_is_accepted_before_it_has_found_anything() -> None:
    store = SlowStore()
    engine = await engine_on(store)
    await engine.register(events(1, 2))
    chunks = ServerCalls(engine, "here").read(request())
    async with asyncio.timeout(LIMIT_S):
        accepted = await anext(chunks)
        assert not accepted.HasField("columns")
        store.may_find.set()
        assert [len(chunk.columns.ids) // 16 async for chunk in chunks] == [2]
    await engine.stop()


async def test_a_read_that_is_left_during_its_search_ends_it() -> None:
    store = SlowStore()
    engine = await engine_on(store)
    chunks = ServerCalls(engine, "here").read(request())
    async with asyncio.timeout(LIMIT_S):
        await anext(chunks)
        await chunks.aclose()
    assert engine.reads == 0
    await engine.stop()
