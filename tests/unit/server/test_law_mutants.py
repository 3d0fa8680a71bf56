"""The laws of a single server, and for each rule that carries one a mutant that must break it.

One seeded history on the in-memory store: events, lost commits, retries, crashes, drains that bring other
servers' events, a reader that takes, stops, and comes back. The rules as they are: nothing lost, missed, repeated or wrongly accepted. With any
one of them turned off, some seed shows a violation.
"""

from __future__ import annotations

import asyncio
import random
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.replacing import replaced
from tests.twins.servers import Wires
from tests.unit.server.outboxes import next_in
from tests.unit.server.writing.test_engine import CONFIG, FAMILY, LINE, ef, formal
from utuple.errors import OutcomeUnknown, Unavailable
from utuple.model.columns import columns_of
from utuple.model.packed import packed
from utuple.model.utuple import Exact, UTuple
from utuple.runtime.clock import now_us
from utuple.server.delivering.cursor import Reading, Sending
from utuple.server.delivering.cursors import Cursors
from utuple.server.delivering.dispatcher import Dispatcher
from utuple.server.delivering.outbox import Outbox
from utuple.server.writing.engine import Engine
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.request import Request
from utuple.server.writing.transaction import PreparedBatch
from utuple.server.writing.writer import Writer
from utuple.store.contract import (
    OWN_ORIGIN,
    Batch,
    Recovered,
    Search,
    StoreUnavailable,
    Transaction,
)
from utuple.store.memory import MemoryStore

SEEDS = range(12)
STEPS = 40
FORMAL = ef(100)
WINDOW = 4


def event_of(number: int, lifetime_s: float) -> UTuple:
    id_ = number.to_bytes(16, "big")
    return UTuple(id_, FAMILY, Exact("a", number), {"n": number}, None, lifetime_s)


@dataclass
class History:
    """What a client and a reader saw."""

    dice: random.Random
    store: MemoryStore = field(default_factory=MemoryStore)
    answered: set[int] = field(default_factory=set)
    fleeting: set[int] = field(default_factory=set)
    """Of lifetime 0: they need not come."""
    brought: set[int] = field(default_factory=set)
    """Of other servers."""
    got: Counter[int] = field(default_factory=Counter)
    positions: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    engine: Engine = field(init=False)
    stream: int = 0
    outbox: Outbox = field(init=False)

    async def run(self) -> list[str]:
        await self.start()
        await self.engine.register(Request(adopt=[LINE]))
        await self.engine.register(formal(100))
        self.attach()
        for number in range(STEPS):
            await self.step(number)
        await self.emit(STEPS, lifetime_s=60.0)  # a commit that was told to fail has failed by now
        await self.drain()
        await self.check()
        await self.engine.stop()
        return self.wrong

    async def start(self) -> None:
        self.engine = Engine(CONFIG, self.store, Wires())
        await self.engine.start()

    def attach(self) -> None:
        self.stream, self.outbox = self.engine.delivering.open_stream()
        self.engine.delivering.attach(self.stream, FORMAL.id, WINDOW, dict(self.positions))

    async def step(self, number: int) -> None:
        match self.dice.randrange(8):
            case 0:
                stored = self.dice.random() < 0.5
                self.store.fail_next_commit(maybe_committed=True, stored=stored)
            case 1:
                await self.engine.stop()
                await self.start()
                self.attach()
            case 2:
                self.engine.delivering.close_stream(self.stream)
                self.attach()
            case 3 | 4:
                await self.take()
            case 5:
                await self.bring(number)
        await self.emit(number, lifetime_s=self.dice.choice([0.0, 60.0, 60.0]))

    async def emit(self, number: int, lifetime_s: float) -> None:
        event = event_of(number, lifetime_s)
        (self.fleeting if lifetime_s == 0 else set()).add(number)
        for retry in (False, True, True):
            request = Request(retry, columns_of([event]), epochs={FAMILY: 1})
            try:
                await self.engine.register(request)
            except (OutcomeUnknown, Unavailable):
                continue
            self.answered.add(number)
            return

    async def bring(self, number: int) -> None:
        """A drain of one more server ends here."""
        numbers = range(1000 + 5 * number, 1005 + 5 * number)
        events = [event_of(n, lifetime_s=60.0) for n in numbers]
        seqs = array("Q", sorted(self.dice.sample(range(1, 50), len(events))))
        expires = array("q", [now_us() + 60_000_000] * len(events))
        batch = Batch(columns_of(events), seqs, expires, f"X{number}")
        try:
            await self.store.commit(Transaction(self.engine.writer.seq, events=[batch]))
        except StoreUnavailable:
            return
        self.brought.update(numbers)
        self.engine.delivering.revealed(await self.store.origins())

    async def take(self) -> int:
        """What is on the stream, taken at once; lets the searches under way come forward first."""
        for _ in range(20):
            await asyncio.sleep(0)
        items = []
        while not self.outbox.is_empty:
            items.append(await next_in(self.outbox))
        count = 0
        for item in items:
            if isinstance(item, Sending):
                origin = item.batch.origin
                for row in item.rows:
                    self.got[item.batch.columns.times_us[row]] += 1
                    if not item.batch.is_fleeting:
                        seq = item.batch.seqs[row]
                        self.positions[origin] = max(self.positions.get(origin, 0), seq)
                count += len(item.rows)
                self.engine.delivering.written(self.stream, len(item.rows))
        self.engine.delivering.taken(self.stream, FORMAL.id, count)
        return count

    async def drain(self) -> None:
        for _ in range(3 * STEPS):
            await self.take()

    async def check(self) -> None:
        search = Search(FORMAL, 0, 10**9, 0)
        kept = [t async for batch in self.store.search(search) for t in batch.columns.times_us]
        due = self.answered - self.fleeting
        self.wrong += [f"lost {n}" for n in due - set(kept)]
        due |= self.brought
        self.wrong += [f"missed {n}" for n in due - self.got.keys()]
        self.wrong += [f"repeated {n}" for n in due if self.got[n] > 1]
        old = Request(templates=[(0, packed(ef(101)))], epochs={FAMILY: 2})
        if not (await self.engine.register(old)).refusals:
            self.wrong.append("accepted under a forged epoch")


async def violations(seed: int) -> list[str]:
    return await History(random.Random(seed)).run()


async def answer_before_commit(self: Engine, batch: Any) -> PreparedBatch:
    prepared = await _prepare(self, batch)
    for waiting, answer in zip(batch, prepared.answers, strict=True):
        waiting.answer.set_result(answer)
    return prepared


_prepare, _prepared = Engine._prepare, Engine._prepared
_end_reading = Cursors.end_reading
_attach = Dispatcher.attach
_take_over = Dispatcher.take_over


def number_the_fleeting(self: Engine, *given: Any) -> PreparedBatch:
    """What is of lifetime 0 takes seqs, and nothing is committed for it."""
    with replaced(Writer, "_fleeting", Writer._stored):
        prepared = _prepared(self, *given)
    transaction = prepared.transaction
    events = [batch for batch in transaction.events if 0 not in batch.columns.lifetimes_us]
    prepared.transaction = replace(transaction, events=events)
    prepared.is_idle = prepared.transaction.is_empty
    return prepared


def stay_live(self: Cursors, committed: int) -> None:
    self.committed = committed


def drop_pending(self: Cursors, reading: Reading, passed: Any = ()) -> list[Sending]:
    cursor = self.get(reading.formal)
    if cursor is not None:
        self._drop_pending(cursor)
    return _end_reading(self, reading, passed)


def wait_for_nothing(self: Cursors, cursor: Any, batch: Any, rows: Any) -> Any:
    """A reader without room is passed over and never falls behind."""
    sent = rows[: max(0, self.room(cursor)) if cursor.is_live else 0]
    self._count(cursor, len(sent))
    return sent


def from_the_start(
    self: Dispatcher, stream: int, id_: bytes, window: int, after: Any, *rest: int
) -> None:
    _attach(self, stream, id_, window, {OWN_ORIGIN: 0}, *rest)


def in_own_only(
    self: Dispatcher, stream: int, id_: bytes, window: int, after: Any, *rest: int
) -> None:
    _attach(self, stream, id_, window, {OWN_ORIGIN: after.get(OWN_ORIGIN, 0)}, *rest)


def without_origins(self: Dispatcher, writer: Writer, recovered: Recovered) -> None:
    _take_over(self, writer, replace(recovered, origins={}))


MUTANTS: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "answer before commit": (Engine, "_prepare", answer_before_commit),
    "what is not kept takes a seq": (Engine, "_prepared", number_the_fleeting),
    "retries are not looked up": (Writer, "retried", lambda self, requests: ([], [])),
    "the epoch is not checked": (
        OwnLines,
        "judge",
        lambda self, family, epoch, accumulates: (None, self.all[0]),
    ),
    "a reopened store is not read again": (Cursors, "fall_behind", stay_live),
    "what commits during a reading is dropped": (Cursors, "end_reading", drop_pending),
    "a reader without room is passed over": (Cursors, "_offer", wait_for_nothing),
    "a stream begins from the start": (Dispatcher, "attach", from_the_start),
    "what a drain brought is not read": (Dispatcher, "revealed", lambda self, *_: None),
    "what drains brought is forgotten in a crash": (Dispatcher, "take_over", without_origins),
    "positions of other origins are ignored": (Dispatcher, "attach", in_own_only),
}


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_rules_as_they_are_break_no_law(seed: int) -> None:
    assert await violations(seed) == []


@pytest.mark.parametrize("mutant", MUTANTS)
async def test_a_rule_turned_off_breaks_a_law(mutant: str) -> None:
    with replaced(*MUTANTS[mutant]):
        found = [await violations(seed) for seed in SEEDS]
    assert any(found), f"no seed of {SEEDS} notices: {mutant}"
