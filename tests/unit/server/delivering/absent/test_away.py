"""Readers with a drop policy at a real writer: what is durable together."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.twins.servers import Servers, Wires
from tests.unit.server.delivering.test_dispatcher import (
    MOVE,
    bring,
    brought,
    drained,
    engine_on,
    numbers,
    reveal,
)
from tests.unit.server.writing.test_engine import CONFIG, FAMILY, ef, events
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.record import MoveStep
from utuple.model.key import HASH_SPACE
from utuple.model.packed import packed
from utuple.model.section import Section
from utuple.model.terms import Terms, newest
from utuple.server.delivering.absent.absences import Absence, Decision
from utuple.server.delivering.outbox import DropNotice
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.memory import MemoryStore

WHOLE = Section(0, HASH_SPACE)
READER = replace(ef(100), terms=Terms(absent=newest(1)))


async def test_an_absence_ends_with_the_transaction_that_has_the_position() -> None:
    """Else a crash between the two has the dropped delivered, to a reader that was told of them."""
    store = MemoryStore()
    first = await engine_on(store)
    delivering = first.delivering
    await first.register(Request(templates=[(0, packed(READER))], epochs={FAMILY: 1}))
    stream, outbox = delivering.open_stream()
    delivering.attach(stream, READER.id, 1000, after=None)
    delivering.detach(stream, READER.id, cancel=False)
    await first.register(events(1, 2, 3))
    delivering.attach(stream, READER.id, 1000, after=None)
    came = await drained(outbox)
    assert numbers(came) == [("", 3)]
    (dropped,) = {item.absence.key: item.absence for item in came if isinstance(item, DropNotice)}
    delivering.away.heard(READER.id, *dropped)
    delivering.acknowledge(READER.id, "", first.writer.seq)
    assert not delivering.away.absences.of(READER.id)
    await first.register(events())
    second = Engine(CONFIG, store, Wires())  # as after a crash: the first has saved nothing more
    await second.start()
    stream, outbox = second.delivering.open_stream()
    second.delivering.attach(stream, READER.id, 1000, after=None)
    assert numbers(await drained(outbox)) == []
    await second.stop()
    await first.stop()


async def test_an_heir_still_drops_what_was_acknowledged_before_it_read_it() -> None:
    """The drained server has delivered the span and its reader acknowledges it here, while the heir is about to read it."""
    heir = await engine_on(MemoryStore())
    delivering = heir.delivering
    await heir.register(Request(templates=[(0, packed(READER))], epochs={FAMILY: 1}))
    stream, outbox = delivering.open_stream()
    delivering.attach(stream, READER.id, 1000, after=None)
    await bring(heir, brought("X", {5: 50, 7: 70, 9: 90}))
    decision = Decision(2, first_seq=9)
    absence = Absence(READER.id, "X", 1, newest(1), 0, upto=9, decision=decision, is_heard=True)
    delivering.away.learn([absence])
    await heir.register(events())
    await drained(outbox)
    delivering.cursors.hold(READER.id)
    await reveal(heir)
    delivering.acknowledge(READER.id, "X", 9)
    delivering.cursors.release(READER.id)
    delivering._pump()
    assert not {("X", 50), ("X", 70)} & {*numbers(await drained(outbox))}
    await heir.stop()


async def test_an_heir_delivers_nothing_of_an_absence_before_the_drained_server_has_said_its_last_word() -> (
    None
):
    """The reader came back during the drain, and the drained server decides what is dropped: the heir must not decide over rows that
    are still hidden, nor otherwise."""
    heir = await engine_on(MemoryStore())
    delivering = heir.delivering
    await heir.register(Request(templates=[(0, packed(READER))], epochs={FAMILY: 1}))
    stream, outbox = delivering.open_stream()
    delivering.attach(stream, READER.id, 1000, after=None)
    await bring(heir, brought("X", {5: 50, 7: 70, 9: 90}))
    went = Absence(READER.id, "X", 1, newest(1), 0, move=MOVE.hex())
    delivering.away.learn([went])
    await heir.register(events())
    await reveal(heir)
    await heir.register(events(1))
    assert numbers(await drained(outbox)) == [("", 1)], "its own go on, those of X wait"
    assert not delivering.away.absences.undecided(READER.id)
    decided = replace(went, move="", upto=9, decision=Decision(2, first_seq=9), is_heard=True)
    delivering.away.learn([decided], MOVE.hex())
    await heir.register(events())
    assert numbers(await drained(outbox)) == [("X", 90)]
    await heir.stop()


async def test_what_the_drained_server_no_longer_speaks_of_was_acknowledged_there() -> None:
    heir = await engine_on(MemoryStore())
    away = heir.delivering.away
    await heir.register(Request(templates=[(0, packed(READER))], epochs={FAMILY: 1}))
    away.learn([Absence(READER.id, "X", 1, newest(1), 0, move=MOVE.hex())])
    other = Absence(READER.id, "Z", 1, newest(1), 0, move=b"another move".hex())
    away.learn([other])
    away.learn([], MOVE.hex())
    assert list(away.absences) == [other]
    assert away.absences.may_read(READER.id, "X") and not away.absences.may_read(READER.id, "Z")
    await heir.stop()


async def test_an_heir_decides_what_is_dropped_when_the_rows_that_came_count() -> None:
    """The drained server has its last word before the heir hears that the drain is committed."""
    servers = Servers()
    a, b = await servers.start("a", Line(WHOLE, 1, (Member("a"),))), await servers.start("b")
    await a.register(Request(templates=[(0, packed(READER))], epochs={FAMILY: 1}))
    stream, _ = a.delivering.open_stream()
    a.delivering.attach(stream, READER.id, 1000, after=None)
    a.delivering.detach(stream, READER.id, cancel=False)
    await a.register(events(1, 2, 3))
    await servers.make("a", Move(MoveKind.HELP_MEMORY, WHOLE, 1, "a", "b"))
    stream, outbox = b.delivering.open_stream()
    b.delivering.attach(stream, READER.id, 1000, after=None)
    servers.wires.before["hear"] = asyncio.Event()
    move = await servers.order("a", Move(MoveKind.DRAIN, WHOLE, 2, "a", "b"))
    await servers.reached("a", move, MoveStep.COMMITTED)
    servers.wires.seen.clear()
    a.move_driver.settle()  # as when it hears of another move
    await servers.called("b", "take")
    assert numbers(await drained(outbox)) == []
    servers.wires.before["hear"].set()
    await servers.drained("a")
    came = await drained(outbox)
    assert numbers(came) == [("a", 3)]
    dropped = [item.absence.decision for item in came if isinstance(item, DropNotice)]
    assert [one.dropped for one in dropped if one] == [2]
    stream, outbox = a.delivering.open_stream()
    a.delivering.attach(stream, READER.id, 1000, after=None)
    await drained(outbox)
    assert a.delivering.away.absences.undecided(READER.id), "it is the heir's to decide"
    await servers.stop()
