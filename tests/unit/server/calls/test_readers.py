"""What an operator is told of readers: how far each is behind is what it would be given (4.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.unit.server.delivering.test_dispatcher import (
    bring,
    brought,
    drained,
    engine_on,
    numbers,
    reveal,
)
from tests.unit.server.writing.test_engine import FAMILY, ea, ef, events, formal
from utuple.model.columns import columns_of
from utuple.model.packed import packed
from utuple.model.terms import Terms, oldest
from utuple.model.utuple import Family
from utuple.server.calls import readers
from utuple.server.calls.handlers import ServerCalls
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    made = await engine_on(MemoryStore())
    yield made
    await made.stop()


async def one_reader(engine: Engine) -> pb.ReaderStatus:
    (found,) = (await ServerCalls(engine, "here").status(pb.StatusRequest())).readers
    return found


def foreign(count: int) -> Request:
    """EAs of another family, wherever it lies in the hash space."""
    family = Family("other", "family")
    rows = [replace(ea(1_000 + number), family=family) for number in range(count)]
    return Request(events=columns_of(rows), epochs={family: 1})


async def test_a_reader_that_is_away_is_behind_by_what_it_would_be_given_and_no_more(
    engine: Engine,
) -> None:
    """Seqs of other families are none of its business: an alarm by them pages for nothing."""
    await engine.register(formal(100))
    assert not (await engine.register(foreign(3_000))).refusals
    assert (await one_reader(engine)).lag == 0
    await engine.register(events(1, 2, 3))
    found = await one_reader(engine)
    assert (found.lag, found.lag_is_more, found.connected) == (3, False, False)
    assert [(family.subject, family.type) for family in found.families] == [tuple(FAMILY)]
    assert found.seen_us < found.expires_us
    engine.delivering.acknowledge(ef(100).id, "", engine.writer.seq - 1)
    assert (await one_reader(engine)).lag == 1


async def test_what_a_drain_has_brought_counts_too(engine: Engine) -> None:
    await engine.register(formal(100))
    await bring(engine, brought("X", {5: 50, 9: 90}))
    await reveal(engine)
    assert (await one_reader(engine)).lag == 2


async def test_a_reader_that_is_connected_and_keeps_up_is_not_behind(engine: Engine) -> None:
    await engine.register(formal(100))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1_000, after=None)
    await engine.register(events(1, 2, 3))
    while outbox.is_empty:
        await engine.register(events())
    found = await one_reader(engine)
    assert (found.lag, found.connected, found.expires_us, found.seen_us) == (0, True, 0, 0)


async def test_what_was_dropped_while_it_was_away_is_not_what_it_is_behind_by(
    engine: Engine,
) -> None:
    reader = replace(ef(100), terms=Terms(absent=oldest(1)))
    await engine.register(Request(templates=[(0, packed(reader))], epochs={FAMILY: 1}))
    stream, outbox = engine.delivering.open_stream()
    engine.delivering.attach(stream, reader.id, 1_000, after=None)
    engine.delivering.detach(stream, reader.id, cancel=False)
    await engine.register(events(1, 2, 3))
    assert (await one_reader(engine)).lag == 3, "nothing is decided before it is back"
    engine.delivering.attach(stream, reader.id, 1_000, after=None)
    first = numbers(await drained(outbox))
    assert first == [("", 1)]
    engine.delivering.detach(stream, reader.id, cancel=False)
    assert (await one_reader(engine)).lag == 1
    await engine.register(events(4))
    assert (await one_reader(engine)).lag == 2


async def test_no_more_is_counted_than_it_is_worth(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "COUNTED_MOST", 2)
    await engine.register(formal(100))
    await engine.register(events(1, 2, 3))
    found = await one_reader(engine)
    assert (found.lag, found.lag_is_more) == (2, True)


async def test_a_reader_is_forgotten_with_all_it_reads_and_again_it_is_a_no_op(
    engine: Engine,
) -> None:
    await engine.register(formal(100))
    await engine.register(formal(101))
    calls = ServerCalls(engine, "here")
    name = (await one_reader(engine)).reader
    request = pb.ForgetReaderRequest(reader=name)
    assert await calls.forget_reader(request) == pb.ForgetReaderAnswer(formals=2)
    assert not (await calls.status(pb.StatusRequest())).readers
    assert await calls.forget_reader(request) == pb.ForgetReaderAnswer()


async def test_a_reader_that_is_connected_is_not_forgotten_behind_its_back(engine: Engine) -> None:
    await engine.register(formal(100))
    stream, _ = engine.delivering.open_stream()
    engine.delivering.attach(stream, ef(100).id, 1_000, after=None)
    request = pb.ForgetReaderRequest(reader=(await one_reader(engine)).reader)
    answer = await ServerCalls(engine, "here").forget_reader(request)
    assert answer == pb.ForgetReaderAnswer(connected=True)
    assert (await one_reader(engine)).formals == 1
