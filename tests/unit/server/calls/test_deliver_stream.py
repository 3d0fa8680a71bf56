"""A reader's stream: messages stay below what a peer takes and lose no row; positions go by origin."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable
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
from utuple.server.calls.deliver_stream import DeliverStream, to_reader
from utuple.server.delivering.cursor import Sending
from utuple.server.delivering.outbox import LineNews
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.contract import Batch, FormalPosition, Transaction
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, server_from_wire
from utuple.wire.codec import MAX_POSITIONS, columns_from_wire, pack, unpack
from utuple.wire.pieces import PIECE_BYTES

FORMAL = b"f" * 16


def test_large_payloads_are_cut_into_messages_in_order() -> None:
    rows = list(range(1, 60))
    sending = replace(sending_of(60, 1 << 19), rows=rows, counts=[len(rows)])
    messages = list(to_reader(sending, "A"))
    assert len(messages) > 1
    assert all(message.ByteSize() <= PIECE_BYTES + (2 << 20) for message in messages)
    got = [columns_from_wire(message.deliveries.columns)[0] for message in messages]
    assert [time for columns in got for time in columns.times_us] == rows


def test_what_is_of_lifetime_0_travels_without_a_seq() -> None:
    """A reader would go on after it, though after a crash another may have it."""
    sending = sending_of(3, 1)
    fleeting = replace(sending, batch=replace(sending.batch, is_fleeting=True))
    some = replace(fleeting, rows=[0, 2], counts=[2])
    assert [m.deliveries.seqs for m in to_reader(fleeting, "A")] == [b""]
    assert [m.deliveries.seqs for m in to_reader(some, "A")] == [b""]
    assert [m.deliveries.seqs for m in to_reader(sending, "A")] != [b""]


def sending_of(count: int, size_bytes: int) -> Sending:
    big = {"blob": "x" * size_bytes}
    made = [
        UTuple(n.to_bytes(16, "big"), Family("s", "t"), Exact("a", n), big, None, 60)
        for n in range(count)
    ]
    batch = Batch(columns_of(made), array("Q", range(1, count + 1)), array("q", [0] * count))
    return Sending(1, batch, list(range(count)), [FORMAL], [count], stored=False)


class Sink:
    """A wire on which a test says when there is room."""

    def __init__(self, *, is_writable: bool = True) -> None:
        self.sent: list[pb.ToReader] = []
        self.is_writable = is_writable
        self.fills = False
        """By every message that is sent."""
        self._resume: Callable[[], None] = lambda: None

    def send(self, message: pb.ToReader) -> None:
        assert self.is_writable, "nothing is sent that would have to wait"
        self.sent.append(message)
        self.is_writable = not self.fills

    def when_writable(self, resume: Callable[[], None]) -> None:
        self._resume = resume

    async def drained(self) -> bool:
        self.make_room()
        return True

    def make_room(self) -> None:
        self.is_writable = True
        self._resume()


def put(stream: DeliverStream, *items: Sending) -> None:
    for item in items:
        stream._outbox.put(item)
    stream._outbox.flush()


@pytest.mark.parametrize(("count", "size_bytes"), [(3, 10), (1_000, 10), (60, 1 << 19)])
async def test_deliveries_are_written_at_once_and_counted_when_there_is_room(
    engine: Engine, count: int, size_bytes: int
) -> None:
    sink, before = Sink(), engine.delivering.delivered
    put(DeliverStream(engine.delivering, "A", sink), sending_of(count, size_bytes))
    ids = b"".join(message.deliveries.columns.ids for message in sink.sent)
    assert len(ids) == 16 * count
    assert engine.delivering.delivered - before == count


async def test_without_room_deliveries_wait_and_leave_as_one_when_there_is_some(
    engine: Engine,
) -> None:
    sink, before = Sink(is_writable=False), engine.delivering.delivered
    stream = DeliverStream(engine.delivering, "A", sink)
    put(stream, sending_of(5, 10))
    put(stream, sending_of(2, 10))
    assert not sink.sent and engine.delivering.delivered == before
    sink.make_room()
    (message,) = sink.sent
    assert len(message.deliveries.columns.ids) == 16 * 7
    assert engine.delivering.delivered - before == 7


async def test_a_large_delivery_is_made_into_messages_only_as_there_is_room(engine: Engine) -> None:
    sink, before = Sink(), engine.delivering.delivered
    sink.fills = True
    put(DeliverStream(engine.delivering, "A", sink), sending_of(60, 1 << 19))
    for pieces in range(1, 10):
        assert len(sink.sent) == pieces
        if sum(len(message.deliveries.columns.ids) for message in sink.sent) == 16 * 60:
            break
        assert engine.delivering.delivered == before, "not all of it is on the wire"
        sink.make_room()
    assert pieces > 1
    sink.make_room()
    assert engine.delivering.delivered - before == 60


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
    sink = Sink()
    async with asyncio.timeout(LIMIT_S):
        await DeliverStream(engine.delivering, "A", sink).serve(said())
    for message in sink.sent:
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
