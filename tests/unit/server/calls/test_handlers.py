"""A `read` as its caller sees it: accepted, and the rows that were found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.unit.server.writing.test_engine import FAMILY, LIMIT_S, ef, engine_on, events
from utuple.errors import InvalidInput, Unavailable
from utuple.model.key import HASH_SPACE
from utuple.model.packed import packed
from utuple.model.section import Section
from utuple.server.calls.handlers import ServerCalls
from utuple.store.contract import Batch, Search, Transaction
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_from_wire, templates_to_wire


class SlowStore(MemoryStore):
    """Finds nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_find, self.asked = asyncio.Event(), asyncio.Event()

    async def search(self, search: Search) -> AsyncGenerator[Batch, None]:
        self.asked.set()
        await self.may_find.wait()
        async for batch in super().search(search):
            yield batch


class SlowCommits(MemoryStore):
    """A commit is stored at once, and told when it may be."""

    def __init__(self) -> None:
        super().__init__()
        self.may_commit, self.begun = asyncio.Event(), asyncio.Event()
        self.may_commit.set()

    async def commit(self, transaction: Transaction) -> None:
        await super().commit(transaction)
        if not self.may_commit.is_set():
            self.begun.set()
        await self.may_commit.wait()


def request(epoch: int = 1) -> pb.ReadRequest:
    return pb.ReadRequest(template=templates_to_wire([packed(ef(9))], epochs={FAMILY: epoch}))


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


async def test_a_page_comes_in_order_of_time_and_no_longer_than_it_was_asked() -> None:
    engine = await engine_on(MemoryStore())
    await engine.register(events(1, 2, 3))
    asked, calls = request(), ServerCalls(engine, "here")
    asked.page.rows, asked.page.newest_first = 2, True
    chunks = [chunk async for chunk in calls.read(asked)]
    times = [time for chunk in chunks for time in columns_from_wire(chunk.columns)[0].times_us]
    ids = b"".join([chunk.columns.ids for chunk in chunks])
    assert len(times) == 2 and times == sorted(times, reverse=True)
    asked.page.after_us, asked.page.after_id = times[-1], ids[-16:]
    rest = [chunk async for chunk in calls.read(asked)]
    assert [len(chunk.columns.ids) for chunk in rest] == [16]
    await engine.stop()


@pytest.mark.parametrize(
    ("field", "page"),
    [
        ("page.rows", pb.Page()),
        ("page.rows", pb.Page(rows=10_001)),
        ("id", pb.Page(rows=1, after_id=b"x")),
        ("page.after", pb.Page(rows=1, after_us=1 << 62, after_id=bytes(16))),
    ],
)
async def test_a_page_that_makes_no_sense_is_refused(field: str, page: pb.Page) -> None:
    engine = await engine_on(MemoryStore())
    asked = request()
    asked.page.CopyFrom(page)
    with pytest.raises(InvalidInput) as caught:
        await anext(ServerCalls(engine, "here").read(asked))
    assert caught.value.field == field and engine.reads == 0
    await engine.stop()


async def rows_read(calls: ServerCalls) -> int:
    return sum([len(chunk.columns.ids) // 16 async for chunk in calls.read(request())])


async def test_a_read_by_another_epoch_is_refused_with_the_line() -> None:
    engine = await engine_on(MemoryStore())
    (answer,) = [chunk async for chunk in ServerCalls(engine, "here").read(request(epoch=2))]
    assert [refusal.reason for refusal in answer.refusals] == [pb.STALE]
    assert [line.epoch for line in answer.lines] == [1]
    assert not answer.columns.ids
    await engine.stop()


async def test_a_read_waits_for_no_commit_and_sees_nothing_of_it() -> None:
    store = SlowCommits()
    engine = await engine_on(store)
    await engine.register(events(1))
    store.may_commit.clear()
    committing = asyncio.create_task(engine.register(events(2)))
    await store.begun.wait()
    async with asyncio.timeout(LIMIT_S):
        assert await rows_read(ServerCalls(engine, "here")) == 1
    store.may_commit.set()
    await committing
    assert await rows_read(ServerCalls(engine, "here")) == 2
    await engine.stop()


async def test_what_was_drained_while_it_was_read_is_to_be_read_again() -> None:
    store = SlowStore()
    engine = await engine_on(store)
    await engine.register(events(1))
    reading = asyncio.create_task(rows_read(ServerCalls(engine, "here")))
    await store.asked.wait()
    engine.writer.moves.participant.left.append(Section(0, HASH_SPACE))
    store.may_find.set()
    with pytest.raises(Unavailable):
        await reading
    await engine.stop()
