"""Readers with a drop policy at a real writer: what is durable together."""

from __future__ import annotations

from dataclasses import replace

from tests.twins.servers import Wires
from tests.unit.server.delivering.test_dispatcher import drained, engine_on, numbers
from tests.unit.server.writing.test_engine import CONFIG, FAMILY, ef, events
from utuple.model.packed import packed
from utuple.model.terms import Terms, newest
from utuple.server.delivering.outbox import DropNotice
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.memory import MemoryStore

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
