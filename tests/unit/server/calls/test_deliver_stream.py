"""A reader's stream: messages stay below what a peer takes and lose no row; positions go by origin."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.twins.servers import Wires
from tests.unit.server.writing.test_engine import (
    CONFIG,
    FAMILY,
    LIMIT_S,
    LINE,
    ea,
    ef,
    events,
    formal,
)
from utuple.cluster.line import ServerInfo
from utuple.errors import InvalidInput
from utuple.model.columns import columns_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.runtime.clock import now_us
from utuple.server.calls.deliver_stream import FEW_ROWS, PIECE_BYTES, ReaderStream, to_reader
from utuple.server.delivering.cursor import Sending
from utuple.server.delivering.outbox import LineNews
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.contract import Batch, FormalPosition, Transaction
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, server_from_wire
from utuple.wire.codec import MAX_POSITIONS, columns_from_wire, pack, unpack

FORMAL = b"f" * 16


def test_large_payloads_are_cut_into_messages_in_order() -> None:
    rows = list(range(1, 60))
    sending = replace(sending_of(60, 1 << 19), rows=rows, counts=[len(rows)])
    messages = list(to_reader(sending, "A"))
    assert len(messages) > 1
    assert all(message.ByteSize() <= PIECE_BYTES + (2 << 20) for message in messages)
    got = [columns_from_wire(message.deliveries.columns)[0] for message in messages]
    assert [time for columns in got for time in columns.times_us] == rows


def sending_of(count: int, size_bytes: int) -> Sending:
    big = {"blob": "x" * size_bytes}
    made = [
        UTuple(n.to_bytes(16, "big"), Family("s", "t"), Exact("a", n), big, None, 60)
        for n in range(count)
    ]
    batch = Batch(columns_of(made), array("Q", range(1, count + 1)), array("q", [0] * count))
    return Sending(1, batch, list(range(count)), [FORMAL], [count], stored=False)


@pytest.mark.parametrize(
    ("count", "size_bytes", "takes", "written"),
    [(3, 10, True, 1), (3, 10, False, 0), (FEW_ROWS + 1, 10, True, 0), (60, 1 << 19, True, 0)],
    ids=["a few", "the wire is busy", "many", "a few that are several messages"],
)
async def test_a_few_deliveries_are_written_at_once_and_all_others_are_fetched(
    engine: Engine, count: int, size_bytes: int, takes: bool, written: int
) -> None:
    stream = ReaderStream(engine.delivering, "A")
    wire: list[pb.ToReader] = []

    def write_now(message: pb.ToReader) -> bool:
        if takes:
            wire.append(message)
        return takes

    stream.write_now = write_now
    before = engine.delivering.delivered
    stream._outbox.put(sending_of(count, size_bytes))
    assert len(wire) == written
    assert stream._outbox.is_empty is bool(written)
    await asyncio.sleep(0)
    assert engine.delivering.delivered - before == (count if written else 0)


async def test_what_comes_behind_one_that_waits_does_not_overtake_it(engine: Engine) -> None:
    stream = ReaderStream(engine.delivering, "A")
    stream.write_now = lambda message: True
    stream._outbox.put(sending_of(FEW_ROWS + 1, 10))
    stream._outbox.put(sending_of(1, 10))
    joined = await stream._outbox.get()
    assert isinstance(joined, Sending) and len(joined.rows) == FEW_ROWS + 2


@pytest.mark.parametrize(("origin", "said"), [("", "A"), ("X", "X")])
def test_deliveries_say_whose_seqs_they_carry(origin: str, said: str) -> None:
    batch = Batch(columns_of([ea(1)]), array("Q", [7]), array("q", [0]), origin)
    (message,) = to_reader(Sending(1, batch, [0], [FORMAL], [1], stored=True), "A")
    assert message.deliveries.origin == said
    assert list(unpack("Q", message.deliveries.seqs, 1, "seqs")) == [7]


def test_news_of_lines_travels_with_where_the_members_are() -> None:
    server = ServerInfo("A", "a:1", since_us=3)
    (message,) = to_reader(LineNews((LINE,), (server,)), "A")
    assert [line_from_wire(line) for line in message.changed.lines] == [LINE]
    assert [server_from_wire(one) for one in message.changed.servers] == [server]


# --- what a reader says ------------------------------------------------------------------------------


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    """It has 1, 2, 3 of its own and 50, 60, 70 of X with the seqs 5, 6, 7."""
    made = Engine(CONFIG, MemoryStore(), Wires())
    await made.start()
    await made.register(Request(adopt=[LINE]))
    await made.register(formal(100))
    await made.register(events(1, 2, 3))
    expires = array("q", [now_us() + 60_000_000] * 3)
    batch = Batch(columns_of(map(ea, (50, 60, 70))), array("Q", (5, 6, 7)), expires, "X")
    await made.store.commit(Transaction(made.writer.seq, events=[batch]))
    made.delivering.revealed(await made.store.origins())
    yield made
    await made.stop()


async def first_answers(engine: Engine, *messages: pb.FromReader) -> dict[str, list[int]]:
    """By origin, the seqs delivered to a reader that says this, until nothing more comes."""

    async def said() -> AsyncIterator[pb.FromReader]:
        for message in messages:
            yield message
        for _ in range(100):
            await asyncio.sleep(0)

    got: dict[str, list[int]] = {}
    async with asyncio.timeout(LIMIT_S):
        async for message in ReaderStream(engine.delivering, "A").serve(said()):
            if message.HasField("deliveries"):
                seqs = message.deliveries.seqs
                rows = unpack("Q", seqs, len(seqs) // 8, "seqs")
                got.setdefault(message.deliveries.origin, []).extend(rows)
    return got


def attach(*positions: pb.Position, resume: bool = True) -> pb.FromReader:
    said = pb.Attach(id=ef(100).id, resume=resume, positions=positions, window=100)
    return pb.FromReader(attach=said)


def acknowledge(position: pb.Position) -> pb.FromReader:
    seqs = pack(array("Q", [position.seq]))
    said = pb.Acknowledge(origin=position.origin, formals=ef(100).id, seqs=seqs)
    return pb.FromReader(acknowledge=said)


async def test_a_stream_goes_on_after_the_positions_of_each_origin(engine: Engine) -> None:
    last = engine.writer.seq
    own, other = pb.Position(origin="A", seq=last - 1), pb.Position(origin="X", seq=6)
    assert await first_answers(engine, attach(own, other)) == {"A": [last], "X": [7]}
    nameless = pb.Position(seq=last - 1)
    assert await first_answers(engine, attach(nameless)) == {"A": [last], "X": [5, 6, 7]}
    assert await first_answers(engine, attach(other)) == {"A": [last - 2, last - 1, last], "X": [7]}


async def test_acknowledgements_of_each_origin_are_kept(engine: Engine) -> None:
    last = engine.writer.seq
    own, other = pb.Position(origin="A", seq=last - 1), pb.Position(origin="X", seq=6)
    beyond = pb.Position(origin="X", seq=8)
    await first_answers(engine, acknowledge(own), acknowledge(other), acknowledge(beyond))
    kept = {FormalPosition(ef(100).id, "", last - 1), FormalPosition(ef(100).id, "X", 6)}
    assert set(engine.delivering.cursors.positions()) == kept
    rest = {"A": [last], "X": [7]}
    assert await first_answers(engine, attach(resume=False)) == rest
    assert await first_answers(engine, attach()) == rest, "where no position is said"


@pytest.mark.parametrize(
    ("formals", "seqs", "field"),
    [
        (bytes(15), [1], "formals"),
        (bytes(16), [1, 2], "seqs"),
        (bytes(16 * (MAX_POSITIONS + 1)), [1] * (MAX_POSITIONS + 1), "formals"),
    ],
)
async def test_acknowledgements_that_do_not_add_up_are_refused(
    engine: Engine, formals: bytes, seqs: list[int], field: str
) -> None:
    said = pb.Acknowledge(origin="A", formals=formals, seqs=pack(array("Q", seqs)))
    with pytest.raises(InvalidInput) as refused:
        await first_answers(engine, pb.FromReader(acknowledge=said))
    assert refused.value.field == field


@pytest.mark.parametrize(
    "position",
    [
        pb.Position(origin="X", seq=1 << 63),
        pb.Position(origin="X\x00", seq=1),
        pb.Position(origin="X" * 10_000, seq=1),
    ],
)
async def test_positions_no_store_can_keep_are_refused(
    engine: Engine, position: pb.Position
) -> None:
    for message in (acknowledge(position), attach(position)):
        with pytest.raises(InvalidInput):
            await first_answers(engine, message)
    assert engine.delivering.cursors.positions() == []
    assert not (await engine.register(Request(epochs={FAMILY: 1}))).refusals
