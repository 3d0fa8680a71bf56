"""Law 2: while a reader is attached its EF or CF does not expire, whatever the clock does. Lifetimes count from when it
was last there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace

import pytest

from tests.unit.server.outboxes import next_in
from tests.unit.server.writing.test_engine import FAMILY, SlowStore, ea, ef, engine_on, events
from utuple.delivery.notice import News, Notice
from utuple.model.columns import NEVER_US, columns_of, left_us
from utuple.model.packed import packed
from utuple.model.utuple import Exact, Template, UTuple
from utuple.runtime.clock import CLOCK
from utuple.server.calls.deliver_stream import to_reader
from utuple.server.delivering.cursor import Sending
from utuple.server.delivering.outbox import CommandSending, Outbox, Outgoing
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.contract import NO_SEQ, Known, RetryKey, Transaction
from utuple.store.memory import MemoryStore

START_US = 1_800_000_000_000_000
SECOND_US = 1_000_000
DAY_S = 86_400
STEPS_S = (61, -61, DAY_S, -DAY_S)
LIFETIMES_S = (0.1, 0.5, 1, 60)


class SteppingClock:
    def __init__(self) -> None:
        self.wall_us = START_US

    def now_us(self) -> int:
        return self.wall_us

    def monotonic_s(self) -> float:
        return 0.0

    def step(self, seconds: float) -> None:
        self.wall_us += round(seconds * SECOND_US)


@pytest.fixture
def clock() -> Iterator[SteppingClock]:
    made = SteppingClock()
    token = CLOCK.set(made)
    yield made
    CLOCK.reset(token)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def engine(clock: SteppingClock, store: MemoryStore) -> AsyncIterator[Engine]:
    CLOCK.set(clock)
    made = await engine_on(store)
    yield made
    await made.stop()


def watch(lifetime_s: float) -> Request:
    half = packed(replace(ef(100), lifetime_s=lifetime_s))
    return Request(templates=[(0, half)], epochs={FAMILY: 1})


def serve(lifetime_s: float) -> tuple[bytes, Request]:
    device = UTuple(b"d" * 16, FAMILY, Exact("room", 1), None, {}, lifetime_s, "r")
    return device.id, Request(devices=columns_of([device]), epochs={FAMILY: 1})


def event(number: int) -> Request:
    return Request(False, columns_of([replace(ea(number), lifetime_s=0)]), epochs={FAMILY: 1})


def command(number: int, lifetime_s: float = 0) -> Request:
    ca = UTuple(number.to_bytes(16, "big"), FAMILY, Template(), {"on": True}, None, lifetime_s)
    return Request(templates=[(0, packed(ca))], epochs={FAMILY: 1})


async def give(engine: Engine, request: Request) -> None:
    """As a caller does that waits for the devices: without one a command of lifetime 0 is not handed over."""
    engine.delivering.commands.handovers.expect(request.templates[0][1].id)
    await engine.register(request)


async def items(outbox: Outbox) -> list[Outgoing]:
    """What is on a stream by now."""
    for _ in range(50):
        await asyncio.sleep(0)
    found: list[Outgoing] = []
    while not outbox.is_empty:
        found.append(await next_in(outbox))
    return found


async def came(outbox: Outbox) -> list[bytes]:
    """Events and commands of those."""
    found = []
    for item in await items(outbox):
        if isinstance(item, Sending):
            found += [item.batch.columns.id_at(row) for row in item.rows]
        elif isinstance(item, CommandSending):
            found.append(item.command)
    return found


@pytest.mark.parametrize("step_s", STEPS_S)
@pytest.mark.parametrize("lifetime_s", LIFETIMES_S)
async def test_an_attached_ef_does_not_expire_whatever_the_clock_does(
    clock: SteppingClock, engine: Engine, lifetime_s: float, step_s: float
) -> None:
    await engine.register(watch(lifetime_s))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    await came(outbox)
    for number in range(1, 6):
        clock.step(step_s)
        await engine.register(event(number))
        engine.delivering.tick(clock.now_us())
        await engine.store.collect(clock.now_us())
    assert [int.from_bytes(id_, "big") for id_ in await came(outbox)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("step_s", STEPS_S)
@pytest.mark.parametrize("lifetime_s", LIFETIMES_S)
async def test_an_attached_cf_does_not_expire_whatever_the_clock_does(
    clock: SteppingClock, engine: Engine, lifetime_s: float, step_s: float
) -> None:
    device, registration = serve(lifetime_s)
    await engine.register(registration)
    stream, outbox = engine.delivering.open_stream()
    await engine.delivering.attach_device(stream, device, 1000, None)
    await came(outbox)
    for number in range(1, 6):
        clock.step(step_s)
        await give(engine, command(number))
        engine.delivering.tick(clock.now_us())
        await engine.store.collect(clock.now_us())
    assert [int.from_bytes(id_, "big") for id_ in await came(outbox)] == [1, 2, 3, 4, 5]


async def test_an_ef_that_is_registered_again_while_it_is_attached_still_does_not_expire(
    clock: SteppingClock, engine: Engine
) -> None:
    await engine.register(watch(1))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    await came(outbox)
    await engine.register(watch(1))  # R5: its reader follows the line
    device, registration = serve(1)
    await engine.register(registration)
    await engine.delivering.attach_device(stream, device, 1000, None)
    await engine.register(registration)
    await came(outbox)
    clock.step(DAY_S)
    await engine.register(event(1))
    await give(engine, command(2))
    assert [int.from_bytes(id_, "big") for id_ in await came(outbox)] == [1, 2]


@pytest.mark.parametrize("ends", ["detach", "stream"])
async def test_a_lifetime_begins_when_the_reader_goes(
    clock: SteppingClock, engine: Engine, store: MemoryStore, ends: str
) -> None:
    device, registration = serve(60)
    await engine.register(watch(60))
    await engine.register(registration)
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    await engine.delivering.attach_device(stream, device, 1000, None)
    await came(outbox)
    clock.step(DAY_S)
    if ends == "detach":
        engine.delivering.detach(stream, ef(100).id, cancel=False)
        engine.delivering.detach(stream, device, cancel=False)
    else:
        engine.delivering.close_stream(stream)
    await engine.register(Request())
    for step_s, lives in ((59, True), (2, False)):
        clock.step(step_s)
        engine.delivering.tick(clock.now_us())
        assert (ef(100).id in engine.writer.templates) is lives
        await store.collect(clock.now_us())
        assert (device in store._devices, ef(100).id in store._templates) == (lives, lives)


async def test_who_was_attached_when_the_server_ended_lives_its_lifetime_from_the_start_on(
    clock: SteppingClock, store: MemoryStore
) -> None:
    CLOCK.set(clock)
    first = await engine_on(store)
    device, registration = serve(1)
    await first.register(watch(0.1))
    await first.register(registration)
    stream, _ = first.delivering.open_stream()
    first.delivering.attach(stream, ef(100).id, 1000, after=None)
    await first.delivering.attach_device(stream, device, 1000, None)
    await first.register(Request())
    await first.stop()
    clock.step(DAY_S)
    second = await engine_on(store)
    stream, outbox = second.delivering.open_stream()
    second.delivering.attach(stream, ef(100).id, 1000, after=None)
    items = [await next_in(outbox) for _ in range(2)]
    assert Notice(News.ATTACHED, ef(100).id) in items, "it had not expired"
    second.delivering.tick(clock.now_us())
    await second.register(Request())
    clock.step(61)
    await second.store.collect(clock.now_us())
    assert (device in store._devices, ef(100).id in store._templates) == (False, True)
    await second.stop()


async def test_a_cf_that_has_left_the_store_is_not_attached_but_registered_again(
    clock: SteppingClock, engine: Engine
) -> None:
    """Commands are looked for in the store: one that is attached and not there would never be found."""
    device, registration = serve(1)
    await engine.register(registration)
    clock.step(61)
    await engine.store.collect(clock.now_us())
    stream, outbox = engine.delivering.open_stream()
    await engine.delivering.attach_device(stream, device, 1000, None)
    assert Notice(News.UNKNOWN, device) in [await next_in(outbox) for _ in range(2)]


def test_another_server_gives_a_formal_that_never_expires_here_its_lifetime() -> None:
    """Its reader is not attached there, and may never be."""
    assert left_us(60 * SECOND_US, NEVER_US, START_US) == 60 * SECOND_US
    assert left_us(60 * SECOND_US, START_US + 7, START_US) == 7
    assert left_us(60 * SECOND_US, START_US - 7, START_US) == 0


async def test_law_2_who_comes_to_an_ef_that_is_over_gets_what_is_being_committed(
    clock: SteppingClock,
) -> None:
    """Its reader is answered before the EA is: both live. When the EA was matched the EF was over, and only not
    dropped yet."""
    store = SlowStore()
    engine = await engine_on(store)
    await engine.register(watch(0.1))
    clock.step(1)
    store.go.clear()
    store.begun.clear()
    registering = asyncio.create_task(engine.register(events(1)))
    await store.begun.wait()
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    assert await came(outbox) == []
    store.go.set()
    await registering
    assert await came(outbox) == [ea(1).id]
    await engine.register(events(2))
    assert await came(outbox) == [ea(2).id]
    await engine.stop()


class SlowLookups(MemoryStore):
    """What is registered again is looked up when it may be."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def known_events(self, keys: Sequence[RetryKey]) -> dict[bytes, Known]:
        self.asked.set()
        await self.go.wait()
        return await super().known_events(keys)


async def test_who_comes_back_while_a_batch_is_looked_up_stays_held(clock: SteppingClock) -> None:
    store = SlowLookups()
    engine = await engine_on(store)
    await engine.register(watch(0.1))
    first, _ = engine.delivering.open_stream()
    engine.delivering.attach(first, ef(100).id, 1000, after=None)
    await engine.register(Request())
    registering = asyncio.create_task(engine.register(events(1, retry=True)))
    engine.delivering.close_stream(first)
    await store.asked.wait()
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1000, after=None)
    store.go.set()
    await registering
    clock.step(1)
    engine.delivering.tick(clock.now_us())
    await engine.register(event(2))
    assert (await came(outbox))[-1:] == [ea(2).id]
    await engine.stop()


async def test_a_command_of_lifetime_0_reaches_its_device_without_a_commit(engine: Engine) -> None:
    device, registration = serve(60.0)
    await engine.register(registration)
    stream, outbox = engine.delivering.open_stream()
    await engine.delivering.attach_device(stream, device, 1000, None)
    await came(outbox)
    seq, commit = engine.writer.seq, engine.store.commit
    committed: list[Transaction] = []

    async def counted(transaction: Transaction) -> None:
        committed.append(transaction)
        await commit(transaction)

    engine.store.commit = counted  # type: ignore[method-assign]
    for number in (1, 2, 3):
        await give(engine, command(number))
    assert [int.from_bytes(id_, "big") for id_ in await came(outbox)] == [1, 2, 3]
    assert engine.writer.seq == seq
    assert not committed, "PostgreSQL has nothing to do with it"


@pytest.mark.parametrize(("seq", "size_bytes"), [(NO_SEQ, 0), (7, 8)])
def test_a_command_of_lifetime_0_says_no_seq_that_its_device_could_acknowledge(
    seq: int, size_bytes: int
) -> None:
    """A seq of 0 would be one the device has acknowledged already, and the command would be dropped."""
    sending = CommandSending(b"d" * 16, b"c" * 16, seq, FAMILY, "room", b"{}", False)
    (message,) = to_reader(sending, "A")
    assert len(message.deliveries.seqs) == size_bytes


async def test_a_device_that_was_given_a_command_of_lifetime_0_gets_the_first_one_kept_after_a_crash(
    clock: SteppingClock,
) -> None:
    """Had the first command a seq, that was not durable, the second one would have the same: acknowledged already."""
    CLOCK.set(clock)
    store = MemoryStore()
    first = await engine_on(store)
    device, registration = serve(60.0)
    await first.register(registration)
    stream, outbox = first.delivering.open_stream()
    await first.delivering.attach_device(stream, device, 1000, None)
    await came(outbox)
    await give(first, command(1))
    (sent,) = [item for item in await items(outbox) if isinstance(item, CommandSending)]
    second = await engine_on(store)  # the first one has died: it committed nothing more
    await second.register(command(2, lifetime_s=60))
    stream, outbox = second.delivering.open_stream()
    await second.delivering.attach_device(stream, device, 1000, sent.seq)
    assert [int.from_bytes(id_, "big") for id_ in await came(outbox)] == [2]
    await second.stop()
