"""What has become of a command, as its server says it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.server.delivering.test_acknowledged import given
from tests.unit.server.moving.test_moves import FAMILY, ca, cf, template
from tests.unit.server.writing.test_engine import engine_on
from utuple.model.columns import columns_of
from utuple.model.utuple import UTuple
from utuple.runtime.clock import now_us
from utuple.server.calls import commanded as asking
from utuple.server.calls.commanded import commanded
from utuple.server.delivering import commands as delivering
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb

DEVICE = cf(50).id
SHORT, LONG = replace(ca(200), lifetime_s=60), ca(201)


def later(monkeypatch: pytest.MonkeyPatch, by_s: float) -> None:
    for module in (asking, delivering):
        monkeypatch.setattr(module, "now_us", lambda: now_us() + round(by_s * 1e6))


async def standing(engine: Engine, command: UTuple) -> list[pb.Handed.ValueType]:
    answer = await commanded(engine, pb.CommandedRequest(id=command.id))
    assert answer.known
    return [device.handed for device in answer.devices]


def acknowledge(engine: Engine, command: UTuple) -> None:
    engine.delivering.acknowledge(DEVICE, "", engine.writer.templates[command.id].seq)


async def serving(store: MemoryStore) -> Engine:
    engine = await engine_on(store)
    await engine.register(Request(devices=columns_of([cf(50)]), epochs={FAMILY: 1}))
    return engine


async def test_a_later_acknowledgement_says_nothing_of_a_command_that_was_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = await serving(MemoryStore())
    await template(engine, 1, SHORT)
    await template(engine, 1, LONG)
    assert await standing(engine, SHORT) == [pb.NOT_CONNECTED]
    later(monkeypatch, 61)
    assert await given(engine, DEVICE) == [LONG.id]
    acknowledge(engine, LONG)
    assert await standing(engine, SHORT) == [pb.NOT_CONNECTED]
    assert await standing(engine, LONG) == [pb.ACKNOWLEDGED]
    await engine.stop()


async def test_a_device_that_has_acknowledged_and_is_gone_stays_in_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = await serving(MemoryStore())
    await template(engine, 1, SHORT)
    stream, _ = engine.delivering.open_stream()
    await engine.delivering.attach_device(stream, DEVICE, 100, after=None)
    engine.delivering.commands.confirm(DEVICE, SHORT.id)
    assert await standing(engine, SHORT) == [pb.HANDED_OVER]
    acknowledge(engine, SHORT)
    assert await standing(engine, SHORT) == [pb.ACKNOWLEDGED]
    await engine.register(Request(cancels=[(0, DEVICE, FAMILY)], epochs={FAMILY: 1}))
    assert await standing(engine, SHORT) == [pb.ACKNOWLEDGED]
    later(monkeypatch, 61)
    assert await standing(engine, SHORT) == [pb.ACKNOWLEDGED]
    later(monkeypatch, 121)
    assert not (await commanded(engine, pb.CommandedRequest(id=SHORT.id))).known
    await engine.stop()


async def test_after_a_restart_nobody_knows_who_had_it_and_had_not_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    engine = await serving(store)
    await template(engine, 1, SHORT)
    await engine.stop()
    engine = await engine_on(store)
    await template(engine, 1, SHORT)
    assert await standing(engine, SHORT) == [pb.NOT_CONNECTED]
    later(monkeypatch, 61)
    assert await standing(engine, SHORT) == [pb.HANDED_UNKNOWN]
    await engine.stop()
