"""The engine on the in-memory store: batches, lost commits, readers and devices, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from tests.twins.servers import Wires
from tests.unit.server.outboxes import next_in
from utuple.cluster.line import Line, Member
from utuple.delivery.handed import Handed
from utuple.delivery.notice import News, Notice
from utuple.errors import OutcomeUnknown, Overloaded, Unavailable
from utuple.model.columns import NEVER_US, columns_of
from utuple.model.key import HASH_SPACE
from utuple.model.packed import packed
from utuple.model.section import Section
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.runtime.clock import now_us
from utuple.server.config import ServerConfig
from utuple.server.delivering.cursor import Sending
from utuple.server.delivering.outbox import CommandSending, LineNews, Outbox
from utuple.server.matching.matched import Matches
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Answer, Request
from utuple.store.contract import (
    Known,
    Recovered,
    RetryKey,
    Search,
    StoreStats,
    StoreUnavailable,
    Transaction,
)
from utuple.store.memory import MemoryStore

FAMILY = Family("truck", "load")
LINE = Line(Section(0, HASH_SPACE), 1, (Member("A"),))
CONFIG = ServerConfig("A", "127.0.0.1:0", "memory", ("none",), reopen_s=0.01)
LIMIT_S = 10

Call = asyncio.Task[Answer]


def ea(number: int) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Exact("t1", number), {"n": number}, None, 60)


def ef(number: int) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Template(), None, {}, 60, "r")


def events(*numbers: int, retry: bool = False) -> Request:
    return Request(retry, columns_of(map(ea, numbers)), epochs={FAMILY: 1})


def formal(number: int) -> Request:
    return Request(templates=[(0, packed(ef(number)))], epochs={FAMILY: 1})


async def engine_on(store: MemoryStore, config: ServerConfig = CONFIG) -> Engine:
    engine = Engine(config, store, Wires())
    await engine.start()
    await engine.register(Request(adopt=[LINE]))
    return engine


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    made = await engine_on(MemoryStore())
    yield made
    await made.stop()


async def numbers_from(outbox: Outbox, count: int) -> list[int]:
    got: list[int] = []
    async with asyncio.timeout(LIMIT_S):
        while len(got) < count:
            item = await next_in(outbox)
            if isinstance(item, Sending):
                columns = item.batch.columns
                got.extend(int.from_bytes(columns.id_at(row), "big") for row in item.rows)
    return got


async def test_stored_then_live_without_gap_or_repeat(engine: Engine) -> None:
    await engine.register(events(1, 2))
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    racing = [asyncio.create_task(engine.register(events(n))) for n in range(3, 30)]
    engine.delivering.attach(stream, ef(100).id, 1000, after={"": 0})
    await asyncio.gather(*racing)
    assert sorted(await numbers_from(outbox, 29)) == list(range(1, 30))


async def test_a_stopped_reader_reads_from_the_store_when_it_takes_again(engine: Engine) -> None:
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 4, after={"": 0})
    for number in range(1, 41):
        await engine.register(events(number))
    got: list[int] = []
    while len(got) < 40:
        more = await numbers_from(outbox, 1)
        engine.delivering.written(stream, len(more))
        engine.delivering.taken(stream, ef(100).id, len(more))
        got.extend(more)
    assert got == list(range(1, 41))


def fleeting(*numbers: int, retry: bool = False) -> Request:
    """EAs of lifetime 0."""
    rows = (replace(ea(number), lifetime_s=0.0) for number in numbers)
    return Request(retry, columns_of(rows), epochs={FAMILY: 1})


async def test_what_is_of_lifetime_0_is_delivered_and_the_store_has_no_part_in_it() -> None:
    """Section 3.1: matched, not perpetuated. Also after a lost answer, when it comes as a retry."""
    store = Counting()
    engine = await engine_on(store)
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after={"": 0})
    await engine.register(events(1))
    assert await numbers_from(outbox, 1) == [1]
    before, seq = store.asked, engine.writer.seq
    calls = [engine.register(fleeting(n)) for n in range(2, 10)]
    await asyncio.gather(*calls, engine.register(fleeting(10, retry=True)))
    assert await numbers_from(outbox, 9) == list(range(2, 11))
    assert (store.asked, engine.writer.seq) == (before, seq)
    await engine.stop()


async def test_a_server_that_lost_its_store_accepts_nothing_of_lifetime_0() -> None:
    """Law 7: another process may serve in its place, and readers be attached there."""
    store = Counting()
    engine = await engine_on(store)
    store.is_lost = True
    with pytest.raises(Unavailable):
        await engine.register(fleeting(1))
    await engine.register(fleeting(1, retry=True))
    await engine.stop()


class Counting(MemoryStore):
    """Counts what is asked of it by the writer; and is lost, when told, until it is opened again."""

    asked = 0
    is_lost = False

    async def open(self, name: str, now_us: int) -> Recovered:
        self.is_lost = False
        return await super().open(name, now_us)

    def is_held(self) -> bool:
        return not self.is_lost and super().is_held()

    async def commit(self, transaction: Transaction) -> None:
        self.asked += 1
        if self.is_lost:
            raise StoreUnavailable("another process has it")
        await super().commit(transaction)

    async def known_events(self, keys: Sequence[RetryKey]) -> dict[bytes, Known]:
        self.asked += bool(keys)
        return await super().known_events(keys)


@pytest.mark.parametrize("stored", [True, False])
async def test_a_lost_commit_is_told_as_unknown_and_a_retry_registers_once(stored: bool) -> None:
    store = MemoryStore()
    engine = await engine_on(store)
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after={"": 0})
    await engine.register(events(1))
    store.fail_next_commit(maybe_committed=True, stored=stored)
    with pytest.raises(OutcomeUnknown):
        await engine.register(events(2))
    await engine.register(events(2, retry=True))
    await engine.register(events(3))
    assert await numbers_from(outbox, 3) == [1, 2, 3]
    await engine.stop()


async def test_a_commit_that_surely_failed_is_told_as_not_registered() -> None:
    store = MemoryStore()
    engine = await engine_on(store)
    store.fail_next_commit(maybe_committed=False)
    with pytest.raises(Unavailable):
        await engine.register(events(1))
    await engine.register(events(1))
    await engine.stop()


async def test_an_ea_that_cannot_be_matched_is_told_as_unknown_and_stored_once() -> None:
    """A bug in the index: by then the commit is on its way."""
    engine = await engine_on(MemoryStore())
    match = engine.writer.index.match

    def broken(*_: object) -> Matches:
        engine.writer.index.match = match  # type: ignore[method-assign]
        raise ValueError("a bug")

    engine.writer.index.match = broken  # type: ignore[method-assign,assignment]
    with pytest.raises(OutcomeUnknown):
        await engine.register(events(1))
    await engine.register(events(1, retry=True))
    search = Search(ef(100), 0, engine.writer.seq, 0)
    assert [len(batch) async for batch in engine.store.search(search)] == [1]
    await engine.stop()


class SlowStore(MemoryStore):
    """Commits wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.go.set()
        self.begun = asyncio.Event()
        self.sizes: list[int] = []

    async def commit(self, transaction: Transaction) -> None:
        self.sizes.append(sum(map(len, transaction.events)))
        self.begun.set()
        await self.go.wait()
        await super().commit(transaction)


async def behind_a_commit(
    store: SlowStore, *requests: Request
) -> tuple[Engine, list[Call], Outbox]:
    """An EF's reader, and EA 1 being committed; the requests have come meanwhile."""
    engine = await engine_on(store, replace(CONFIG, ahead_rows=2))
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after={"": 0})
    await engine.register(Request())  # that it is attached is durable
    store.go.clear()
    store.begun.clear()
    store.sizes.clear()
    calls = []
    for request in (events(1), *requests):
        calls.append(asyncio.create_task(engine.register(request)))
        await store.begun.wait()
    await asyncio.sleep(0)  # the last one's task has begun
    return engine, calls, outbox


async def test_what_comes_during_a_commit_is_prepared_meanwhile_and_told_after_its_own() -> None:
    store = SlowStore()
    engine, calls, outbox = await behind_a_commit(store, events(2, 3), events(4, 5))
    assert engine.writer.seq == 1 + 3, "an EF, and three EAs; the rest waits for its turn"
    assert not any(call.done() for call in calls)
    store.go.set()
    await asyncio.gather(*calls)
    assert store.sizes == [1, 2, 2]
    assert await numbers_from(outbox, 5) == [1, 2, 3, 4, 5]
    await engine.stop()


async def test_retries_and_templates_wait_for_the_commit() -> None:
    store = SlowStore()
    again, new = events(1, 2, retry=True), events(3, 4)
    engine, calls, outbox = await behind_a_commit(store, again, formal(101), new)
    assert engine.writer.seq == 1 + 1, "what is behind them keeps its place"
    store.go.set()
    await asyncio.gather(*calls)
    assert await numbers_from(outbox, 4) == [1, 2, 3, 4], "the retry was known"
    await engine.stop()


async def test_what_was_prepared_ahead_of_a_lost_commit_is_registered_after_all() -> None:
    store = SlowStore()
    engine, calls, outbox = await behind_a_commit(store, events(2, 3), events(4, 5))
    store.fail_next_commit(maybe_committed=True, stored=False)
    store.go.set()
    lost, *others = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(lost, OutcomeUnknown)
    assert not any(isinstance(answer, BaseException) for answer in others)
    assert await numbers_from(outbox, 4) == [2, 3, 4, 5]
    assert engine.writer.seq == 1 + 4, "numbered anew"
    await engine.stop()


async def test_a_restart_has_everything_back() -> None:
    store = MemoryStore()
    first = await engine_on(store)
    await first.register(formal(100))
    await first.register(events(1, 2, 3))
    stream, outbox = first.delivering.open_stream()
    first.delivering.attach(stream, ef(100).id, 1000, after={"": 0})
    assert await numbers_from(outbox, 3) == [1, 2, 3]
    seq_of_two = first.writer.seq - 1
    first.delivering.acknowledge(ef(100).id, "", seq_of_two)
    first.delivering.detach(stream, ef(100).id, cancel=False)
    assert await next_in(outbox) == Notice(News.DETACHED, ef(100).id), "positions are durable now"
    await first.stop()
    second = Engine(CONFIG, store, Wires())
    await second.start()
    assert second.writer.lines.all == [LINE]
    stream, outbox = second.delivering.open_stream()
    second.delivering.attach(stream, ef(100).id, 1000, after=None)
    assert await numbers_from(outbox, 1) == [3], "goes on after what was acknowledged"
    await second.stop()


async def test_overload_is_refused_and_nothing_of_it_kept() -> None:
    engine = await engine_on(MemoryStore(), replace(CONFIG, max_queued_rows=5))
    calls = [asyncio.create_task(engine.register(events(n, n + 1000))) for n in range(1, 20)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Overloaded)]
    assert refused and all(error.retry_after_s > 0 for error in refused)
    assert engine.registered == 2 * (len(answers) - len(refused))
    await engine.stop()


async def test_what_the_writer_will_not_come_to_in_time_is_refused() -> None:
    engine = await engine_on(MemoryStore(), replace(CONFIG, service_us=100.0))
    rows = 1_000  # 0.1 s of work and more: at most ten such calls wait
    first, count = 1, 40

    async def call(number: int) -> object:
        start = first + number * rows
        try:
            return await engine.register(events(*range(start, start + rows)))
        except Overloaded as error:
            return error

    await call(0)  # from here on it is known what the writer can do
    answers = await asyncio.gather(*(call(number) for number in range(1, count)))
    refused = [answer for answer in answers if isinstance(answer, Overloaded)]
    assert count / 2 < len(refused) < count - 1
    assert all(0 < error.retry_after_s < 5 for error in refused)
    assert engine.registered == rows * (count - len(refused))
    assert not isinstance(await call(count), Overloaded), "and then it takes more"
    await engine.stop()


async def test_what_nobody_would_wait_for_is_refused_when_its_turn_comes_and_not_registered() -> (
    None
):
    store = SlowStore()
    engine = await engine_on(store)
    store.begun.clear()
    store.go.clear()
    first = engine.submit(events(1), within_s=0.01)
    await store.begun.wait()
    calls = [
        engine.submit(events(number), within_s=within_s)
        for number, within_s in ((2, 0.01), (3, LIMIT_S))
    ]
    await asyncio.sleep(0.05)
    store.go.set()
    late, in_time = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(late, Overloaded)
    assert isinstance(in_time, Answer)
    assert isinstance(await first, Answer), "it did not wait for others"
    assert store.sizes[-2:] == [1, 1]
    await engine.stop()


async def test_a_command_reaches_the_connected_device_and_is_confirmed(engine: Engine) -> None:
    device = UTuple(b"d" * 16, FAMILY, Exact("d1", 1), None, {}, 60, "r")
    command = UTuple(b"c" * 16, FAMILY, Template(), {"on": True}, None, 0)
    await engine.register(Request(devices=columns_of([device]), epochs={FAMILY: 1}))
    handover = engine.delivering.commands.handovers.expect(command.id)
    await engine.register(Request(templates=[(0, packed(command))], epochs={FAMILY: 1}))
    async with asyncio.timeout(LIMIT_S):
        await handover.confirmed.wait()
    assert dict(handover.devices) == {device.id: "d1"}
    assert handover.handed(device.id) is Handed.NOT_CONNECTED

    stream, outbox = engine.delivering.open_stream()
    await engine.delivering.attach_device(stream, device.id, 10, after=0)
    assert await next_in(outbox) == LineNews((LINE,), ())
    assert await next_in(outbox) == Notice(News.ATTACHED, device.id)
    kept = replace(command, id=b"k" * 16, lifetime_s=60.0)
    handover = engine.delivering.commands.handovers.expect(kept.id)
    await engine.register(Request(templates=[(0, packed(kept))], epochs={FAMILY: 1}))
    async with asyncio.timeout(LIMIT_S):
        sent = await next_in(outbox)
        assert isinstance(sent, CommandSending) and sent.command == kept.id
        assert handover.handed(device.id) is Handed.NOT_CONFIRMED
        engine.delivering.commands.confirm(device.id, kept.id)
        engine.delivering.detach(stream, device.id, cancel=True)  # takes it and leaves at once
        await handover.confirmed.wait()
    assert handover.handed(device.id) is Handed.HANDED_OVER


async def test_a_device_that_comes_later_gets_the_command_that_still_lives(engine: Engine) -> None:
    command = UTuple(b"c" * 16, FAMILY, Template(), {"on": True}, None, 60)
    await engine.register(Request(templates=[(0, packed(command))], epochs={FAMILY: 1}))
    device = UTuple(b"d" * 16, FAMILY, Exact("d1", 1), None, {}, 60, "r")
    await engine.register(Request(devices=columns_of([device]), epochs={FAMILY: 1}))
    stream, outbox = engine.delivering.open_stream()
    await engine.delivering.attach_device(stream, device.id, 10, after=None)
    assert await next_in(outbox) == LineNews((LINE,), ())
    assert await next_in(outbox) == Notice(News.ATTACHED, device.id)
    async with asyncio.timeout(LIMIT_S):
        sent = await next_in(outbox)
    assert isinstance(sent, CommandSending)
    assert (sent.command, sent.stored) == (command.id, True)


async def test_a_formal_lives_its_lifetime_from_when_its_reader_was_last_seen(
    engine: Engine,
) -> None:
    await engine.register(formal(100))
    before = engine.writer.templates[ef(100).id].expires_us
    stream, _ = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 10, after={"": 0})
    engine.delivering.close_stream(stream)
    await engine.register(events(1))
    assert before < engine.writer.templates[ef(100).id].expires_us < NEVER_US


async def test_a_command_that_comes_again_waits_for_the_same_handover(engine: Engine) -> None:
    """The first call is gone while the second waits: what is found is told to the second."""
    delivering = engine.delivering
    command = b"c" * 16
    first = delivering.commands.handovers.expect(command)
    second = delivering.commands.handovers.expect(command)
    delivering.commands.handovers.forget(command)
    assert delivering.commands.handovers.expect(command) is second is first


async def test_a_clock_that_jumps_does_not_drop_what_is_being_read(engine: Engine) -> None:
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 10, after=None)
    engine.delivering.tick(now_us() + 3_600_000_000)
    await engine.register(events(1))
    assert await numbers_from(outbox, 1) == [1]


class LosableStore(MemoryStore):
    """Once lost, it gives nothing until it is opened again."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = False
        self.opened = asyncio.Event()

    async def open(self, name: str, now_us: int) -> Recovered:
        self.is_open = True
        self.opened.set()
        return await super().open(name, now_us)

    def lose(self) -> None:
        self.is_open = False
        self.opened.clear()

    def _check(self) -> None:
        if not self.is_open:
            raise StoreUnavailable("the database is gone")

    async def commit(self, transaction: Transaction) -> None:
        self._check()
        await super().commit(transaction)

    async def stats(self) -> StoreStats:
        self._check()
        return await super().stats()


async def test_a_store_that_is_lost_is_opened_again_though_nothing_is_written() -> None:
    """Law 2: readers search what a server holds that takes nothing any more (seed 3105122)."""
    store = LosableStore()
    engine = await engine_on(store, replace(CONFIG, stats_s=0.01))
    store.lose()
    async with asyncio.timeout(LIMIT_S):
        await store.opened.wait()
    await engine.register(events(1))
    await engine.stop()
