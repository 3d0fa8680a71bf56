"""Delivering what drains have brought, and news of lines, on the in-memory store."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.twins.servers import Wires
from tests.unit.server.outboxes import next_in
from tests.unit.server.writing.test_engine import (
    CONFIG,
    FAMILY,
    LIMIT_S,
    ea,
    ef,
    events,
    fleeting,
    formal,
)
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.delivery.notice import News, Notice
from utuple.errors import Unavailable
from utuple.model.columns import Columns, columns_of
from utuple.model.key import HASH_SPACE, key_of
from utuple.model.packed import packed
from utuple.model.section import Section
from utuple.model.utuple import Family, UTuple
from utuple.runtime.clock import now_us
from utuple.server.delivering.cursor import Sending
from utuple.server.delivering.outbox import LineNews, Outbox, Outgoing
from utuple.server.delivering.reading.searching import stored_matches
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.contract import Batch, FormalPosition, Transaction
from utuple.store.memory import MemoryStore

MOVE = b"m" * 16
KEY = key_of(*FAMILY)
MIDDLE = HASH_SPACE // 2
HALVES = (Section(0, MIDDLE), Section(MIDDLE, HASH_SPACE))
HERE, THERE = (HALVES[KEY >= MIDDLE], HALVES[KEY < MIDDLE])
LINE = Line(HERE, 1, (Member("A"), Member("B")))
ELSE = Line(THERE, 1, (Member("A"),))
NEWER = replace(LINE, epoch=2, members=(Member("A"), Member("C")))
SERVERS = [ServerInfo("A", "a:1"), ServerInfo("B", "b:1"), ServerInfo("C", "c:1")]


async def engine_on(store: MemoryStore) -> Engine:
    engine = Engine(CONFIG, store, Wires())
    await engine.start()
    await engine.register(Request(adopt=[LINE, ELSE], adopt_servers=SERVERS))
    return engine


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    made = await engine_on(MemoryStore())
    yield made
    await made.stop()


def brought(origin: str, seqs: dict[int, int], family: Family = FAMILY) -> Batch:
    """Rows of another server, hidden: number by seq."""
    rows = [replace(ea(number), family=family) for number in seqs.values()]
    expires = array("q", [now_us() + 60_000_000] * len(rows))
    return Batch(columns_of(rows), array("Q", seqs), expires, origin, MOVE)


async def bring(engine: Engine, *batches: Batch) -> None:
    await engine.store.commit(Transaction(engine.writer.seq, events=batches))


async def reveal(engine: Engine, sections: list[Section] | None = None) -> None:
    await engine.store.commit(Transaction(engine.writer.seq, revealed=[MOVE]))
    engine.delivering.revealed(await engine.store.origins(), sections)


async def drained(outbox: Outbox) -> list[Outgoing]:
    """What is on a stream when the searches under way have come to their end."""
    for _ in range(50):
        await asyncio.sleep(0)
    items: list[Outgoing] = []
    while not outbox.is_empty:
        item = await next_in(outbox)
        assert item is not None
        items.append(item)
    return items


def numbers(items: list[Outgoing]) -> list[tuple[str, int]]:
    return [
        (item.batch.origin, int.from_bytes(item.batch.columns.id_at(row), "big"))
        for item in items
        if isinstance(item, Sending)
        for row in item.rows
    ]


async def test_what_a_drain_brought_is_delivered_once_it_counts(engine: Engine) -> None:
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    await engine.register(events(1))
    await bring(engine, brought("X", {5: 50, 9: 90}), brought("Y", {7: 70}))
    assert numbers(await drained(outbox)) == [("", 1)]
    await reveal(engine)
    assert numbers(await drained(outbox)) == [("X", 50), ("X", 90), ("Y", 70)]
    await engine.register(events(2))
    assert numbers(await drained(outbox)) == [("", 2)]


async def test_a_restart_goes_on_after_what_was_acknowledged_of_each_origin() -> None:
    store = MemoryStore()
    first = await engine_on(store)
    await first.register(formal(100))
    await first.register(events(1, 2))
    await bring(first, brought("X", {5: 50, 9: 90}), brought("Y", {7: 70}))
    await reveal(first)
    first.delivering.acknowledge(ef(100).id, "X", 5)
    first.delivering.acknowledge(ef(100).id, "Y", 7)
    first.delivering.acknowledge(ef(100).id, "", first.writer.seq)
    first.delivering.chores.save()
    await first.register(events())
    await first.stop()
    second = Engine(CONFIG, store, Wires())
    await second.start()
    stream, outbox = second.delivering.open_stream()
    second.delivering.attach(stream, ef(100).id, 1000, after=None)
    assert numbers(await drained(outbox)) == [("X", 90)]
    await second.stop()


async def test_positions_that_came_with_a_drain_are_gone_on_after(engine: Engine) -> None:
    await engine.register(formal(100))
    engine.delivering.cursors.learn_positions([FormalPosition(ef(100).id, "X", 5)])
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    await bring(engine, brought("X", {5: 50, 9: 90}))
    await reveal(engine)
    assert numbers(await drained(outbox)) == [("X", 90)]


async def test_a_reveal_whose_outcome_was_lost_is_found_when_the_store_is_open_again() -> None:
    store = MemoryStore()
    engine = await engine_on(store)
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    await drained(outbox)
    await bring(engine, brought("X", {5: 50}))
    await engine.store.commit(Transaction(engine.writer.seq, revealed=[MOVE]))
    store.fail_next_commit(maybe_committed=False)
    with pytest.raises(Unavailable):
        await engine.register(events(1))
    await engine.register(events(2))
    assert sorted(numbers(await drained(outbox))) == [("", 2), ("X", 50)]
    await engine.stop()


async def test_only_readers_of_the_sections_are_searched_for(engine: Engine) -> None:
    await engine.register(formal(100))
    stream, _ = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    await bring(engine, brought("X", {5: 50}))
    cursor = engine.delivering.cursors.get(ef(100).id)
    assert cursor is not None
    await reveal(engine, [THERE])
    assert "X" not in cursor.due
    engine.delivering.revealed({"X": 5}, [HERE])
    assert "X" in cursor.due


async def test_a_read_finds_what_is_own_then_what_was_brought(engine: Engine) -> None:
    await engine.register(events(1, 2))
    upto = engine.writer.seq
    await engine.register(events(3))
    await bring(engine, brought("X", {5: 50, 9: 90}), brought("Y", {7: 70}))
    now = now_us()
    matches = stored_matches(engine.store, ef(100), upto, {}, now)
    assert numbers_of([columns async for columns in matches]) == [1, 2]
    await reveal(engine)
    origins = engine.delivering.cursors.origins
    matches = stored_matches(engine.store, ef(100), upto, origins, now)
    assert numbers_of([columns async for columns in matches]) == [1, 2, 50, 90, 70]


def numbers_of(found: list[Columns]) -> list[int]:
    return [int.from_bytes(id_, "big") for columns in found for id_ in columns.each_id()]


# --- news of lines -----------------------------------------------------------------------------------


def other_family() -> Family:
    tried = (Family("truck", f"t{n}") for n in range(100))
    return next(family for family in tried if key_of(*family) in THERE)


def elsewhere(number: int) -> UTuple:
    return replace(ef(number), family=other_family())


async def test_who_attaches_is_told_the_line_once_a_stream(engine: Engine) -> None:
    await engine.register(formal(100))
    await engine.register(formal(101))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 10, after=None)
    engine.delivering.attach(stream, ef(101).id, 10, after=None)
    assert await drained(outbox) == [
        LineNews((LINE,), (SERVERS[0], SERVERS[1])),
        Notice(News.ATTACHED, ef(100).id),
        Notice(News.ATTACHED, ef(101).id),
    ]


async def test_a_changed_line_is_told_to_the_streams_that_read_something_of_it(
    engine: Engine,
) -> None:
    epochs = {FAMILY: 1, other_family(): 1}
    templates = [(0, packed(ef(100))), (1, packed(elsewhere(101)))]
    await engine.register(Request(templates=templates, epochs=epochs))
    concerned, outbox = engine.delivering.open_stream()
    other, other_outbox = engine.delivering.open_stream()
    engine.delivering.attach(concerned, ef(100).id, 10, after=None)
    engine.delivering.attach(other, ef(101).id, 10, after=None)
    await drained(outbox)
    await drained(other_outbox)
    engine.delivering.changed([NEWER])
    engine.delivering.changed([NEWER, LINE])
    assert await drained(outbox) == [LineNews((NEWER,), (SERVERS[0], SERVERS[2]))]
    assert await drained(other_outbox) == []
    late, late_outbox = engine.delivering.open_stream()
    engine.delivering.attach(late, ef(100).id, 10, after=None)
    assert (await drained(late_outbox))[0] == LineNews((NEWER,), (SERVERS[0], SERVERS[2]))


async def test_devices_are_told_of_changed_lines(engine: Engine) -> None:
    device = replace(ea(7), data=None, where={}, reader="r")
    await engine.register(Request(devices=columns_of([device]), epochs={FAMILY: 1}))
    stream, outbox = engine.delivering.open_stream()
    await engine.delivering.attach_device(stream, device.id, 10, after=None)
    await drained(outbox)
    engine.delivering.changed([ELSE, NEWER])
    assert await drained(outbox) == [LineNews((NEWER,), (SERVERS[0], SERVERS[2]))]


async def test_who_asks_for_an_unknown_formal_is_told_every_line(engine: Engine) -> None:
    """The formal may have gone with the section; nobody here knows its family."""
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 10, after=None)
    await engine.delivering.attach_device(stream, ef(101).id, 10, after=None)
    assert await drained(outbox) == [
        LineNews(tuple(sorted((LINE, ELSE), key=lambda line: line.section)), tuple(SERVERS[:2])),
        Notice(News.UNKNOWN, ef(100).id),
        Notice(News.UNKNOWN, ef(101).id),
    ]


async def test_a_line_is_told_when_it_is_durable_not_when_the_writer_has_it(engine: Engine) -> None:
    """A commit that fails undoes it, and readers would hold an epoch that never was (R3)."""
    await engine.register(formal(100))
    engine.writer.lines.hear(NEWER)
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 10, after=None)
    assert (await drained(outbox))[0] == LineNews((LINE,), (SERVERS[0], SERVERS[1]))


async def test_lines_are_told_when_the_store_is_open_again() -> None:
    """The commit that changed them was in doubt."""
    store = MemoryStore()
    engine = await engine_on(store)
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 10, after=None)
    await drained(outbox)
    await store.commit(Transaction(engine.writer.seq, lines=[NEWER, ELSE]))
    store.fail_next_commit(maybe_committed=False)
    with pytest.raises(Unavailable):
        await engine.register(events(1))
    async with asyncio.timeout(LIMIT_S):
        assert await next_in(outbox) == LineNews((NEWER,), (SERVERS[0], SERVERS[2]))
    await engine.stop()


async def test_what_is_never_stored_waits_a_moment_for_a_reader_on_its_way(engine: Engine) -> None:
    await engine.register(formal(100))
    await engine.register(events(1))
    await engine.register(fleeting(2))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    await engine.register(fleeting(3))
    assert numbers(await drained(outbox)) == [("", 1), ("", 2), ("", 3)]
    engine.delivering.close_stream(stream)
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    assert numbers(await drained(outbox)) == [("", 1)]


# --- law 2: a reader opened again; what its earlier attachment says late concerns nobody ------------------


async def test_the_late_words_of_an_attachment_that_was_replaced_change_nothing(
    engine: Engine,
) -> None:
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 10, after=None, generation=1)
    engine.delivering.attach(stream, ef(100).id, 10, after=None, generation=2)
    await engine.register(events(1, 2))
    engine.delivering.taken(stream, ef(100).id, 2, generation=1)
    engine.delivering.detach(stream, ef(100).id, cancel=True, generation=1)
    assert Notice(News.DETACHED, ef(100).id, 1) in await drained(outbox)
    cursor = engine.delivering.cursors.get(ef(100).id)
    assert cursor is not None and cursor.outstanding == 2
    assert engine.delivering.attached.is_by(ef(100).id, stream, 2)
    await engine.register(events(3))
    assert numbers(await drained(outbox)) == [("", 3)]


async def test_a_reader_whose_formal_somebody_else_has_cancelled_is_told_and_may_register_it_again(
    engine: Engine,
) -> None:
    """As `utuple.testing` does between tests, and an operator may: it would wait for ever."""
    await engine.register(formal(100))
    (stream, outbox), (_, others) = (engine.delivering.open_stream() for _ in range(2))
    engine.delivering.attach(stream, ef(100).id, 10, after=None, generation=7)
    await drained(outbox)
    await engine.register(Request(cancels=[(0, ef(100).id, FAMILY)], epochs={FAMILY: 1}))
    assert Notice(News.UNKNOWN, ef(100).id, 7) in await drained(outbox)
    assert ef(100).id not in engine.delivering.attached and await drained(others) == []
    await engine.register(formal(100))
    engine.delivering.attach(stream, ef(100).id, 10, after={}, generation=7)
    await engine.register(events(1))
    assert numbers(await drained(outbox)) == [("", 1)]


async def test_an_attach_of_an_earlier_generation_is_told_who_holds_the_formal(
    engine: Engine,
) -> None:
    """Whatever order the two come in at a server: so all servers give the formal to the same one."""
    await engine.register(formal(100))
    (one, its), (other, others) = engine.delivering.open_stream(), engine.delivering.open_stream()
    engine.delivering.attach(one, ef(100).id, 10, after=None, generation=8)
    engine.delivering.attach(other, ef(100).id, 10, after=None, generation=7)
    assert Notice(News.REPLACED, ef(100).id, 8) in await drained(others)
    await engine.register(events(1))
    assert numbers(await drained(its)) == [("", 1)]
    engine.delivering.attach(other, ef(100).id, 10, after=None, generation=9)
    assert Notice(News.REPLACED, ef(100).id, 9) in await drained(its)


def large(number: int) -> UTuple:
    return replace(ea(number), data={"text": "x" * 999_000})


async def test_a_reader_that_takes_nothing_is_sent_a_window_of_bytes_and_no_more(
    engine: Engine,
) -> None:
    """Law of 4.2: every buffer has a limit. Of 60 events of a megabyte some megabytes are on their way, whether they
    were stored before, come live or come while the store is read; one that is larger than the window still goes."""
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    for number in range(30):
        await engine.register(Request(events=columns_of([large(number)]), epochs={FAMILY: 1}))
    window_bytes = 3 << 20
    engine.delivering.attach(stream, ef(100).id, 10_000, None, window_bytes=window_bytes)
    for number in range(30, 60):
        await engine.register(Request(events=columns_of([large(number)]), epochs={FAMILY: 1}))
    got: list[int] = []
    while True:
        items = [item for item in await drained(outbox) if isinstance(item, Sending)]
        if not items:
            break
        come = numbers(list(items))
        assert len(come) <= 4
        got += [number for _, number in come]
        for item in items:
            engine.delivering.written(stream, len(item.rows), item.weight_bytes)
            sizes = [len(item.batch.columns.payloads[row]) for row in item.rows]
            engine.delivering.taken(stream, ef(100).id, len(sizes), 0, sum(sizes))
    assert got == list(range(60))


async def test_a_delivery_larger_than_the_window_still_goes_one_at_a_time(engine: Engine) -> None:
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 10_000, None, window_bytes=1)
    for number in range(3):
        await engine.register(Request(events=columns_of([large(number)]), epochs={FAMILY: 1}))
    for number in range(3):
        items = await drained(outbox)
        assert [found for _, found in numbers(items)] == [number]
        engine.delivering.written(stream, 1, 999_011)
        engine.delivering.taken(stream, ef(100).id, 1, 0, 999_011)
