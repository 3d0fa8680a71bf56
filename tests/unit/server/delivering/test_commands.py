"""Commands that wait for their search: each does so once, whoever asks how often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from tests.unit.server.writing.test_engine import CONFIG, FAMILY, LIMIT_S, LINE, engine_on
from utuple.errors import Overloaded
from utuple.model.columns import columns_of
from utuple.model.packed import packed
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.server.calls.handlers import ServerCalls
from utuple.server.delivering.handover import Handover
from utuple.server.moving.steps import HearLines
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.contract import Batch, Search
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import templates_to_wire


class BusyStore(MemoryStore):
    """Searches wait until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.searched: list[bytes] = []
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def search(self, search: Search) -> AsyncGenerator[Batch, None]:
        self.searched.append(search.template.id)
        self.begun.set()
        await self.go.wait()
        async for batch in super().search(search):
            yield batch


def command(name: str, lifetime_s: float = 60.0) -> UTuple:
    return UTuple(name.encode() * 16, FAMILY, Template(), {"on": True}, None, lifetime_s)


async def send(engine: Engine, sent: UTuple, epoch: int = 1) -> Handover:
    handover = engine.delivering.commands.expect(packed(sent))
    await engine.register(Request(templates=[(0, packed(sent))], epochs={sent.family: epoch}))
    return handover


async def serve(engine: Engine, address: str) -> None:
    device = UTuple(address.encode() * 8, FAMILY, Exact(address, 1), None, {}, 60, "r")
    await engine.register(Request(devices=columns_of([device]), epochs={FAMILY: 1}))


async def answered(handover: Handover) -> list[str]:
    async with asyncio.timeout(LIMIT_S):
        await handover.confirmed.wait()
    return list(handover.devices.values())


async def test_commands_that_come_again_while_they_wait_are_searched_once() -> None:
    """Their senders visit all members anew whenever a line changes: that must not keep others waiting."""
    store = BusyStore()
    engine = await engine_on(store)
    busy, kept, fleeting = command("a"), command("b"), command("c", 0.0)
    await send(engine, busy)
    calls = [await send(engine, sent) for _ in range(5) for sent in (kept, fleeting)]
    last = await send(engine, command("z"))
    store.go.set()
    assert await answered(last) == []
    assert store.searched == [busy.id, kept.id, fleeting.id, command("z").id]
    assert all(call.found.is_set() for call in calls)
    await engine.stop()


async def test_what_came_between_two_visits_of_a_command_that_waits_is_found() -> None:
    """A move may have brought it there meanwhile."""
    store = BusyStore()
    engine = await engine_on(store)
    await send(engine, command("a"))
    await serve(engine, "d1")
    await send(engine, command("c", 0.0))
    await serve(engine, "d2")
    again = await send(engine, command("c", 0.0))
    store.go.set()
    assert await answered(again) == ["d1", "d2"]
    await engine.stop()


async def test_a_command_that_comes_again_while_it_is_searched_is_searched_again() -> None:
    """That search may have begun before what this call must find was there."""
    store = BusyStore()
    engine = await engine_on(store)
    await send(engine, command("a"))
    await store.begun.wait()
    engine.delivering.commands.handovers.forget(command("a").id)
    await serve(engine, "d1")
    again = await send(engine, command("a"))
    store.go.set()
    assert await answered(again) == ["d1"]
    assert store.searched == [command("a").id] * 2
    await engine.stop()


async def test_a_command_that_was_searched_is_not_searched_again_under_the_same_line() -> None:
    """Whether anybody waited for it or not: else callers that give up and come again keep each other waiting for ever
    (seed 2001281)."""
    store = BusyStore()
    engine = await engine_on(store)
    await serve(engine, "d1")
    kept = command("a")
    await send(engine, kept)
    engine.delivering.commands.handovers.forget(kept.id)
    last = await send(engine, command("z"))
    store.go.set()
    await answered(last)
    again = await send(engine, kept)
    assert again.found.is_set()
    assert await answered(again) == ["d1"]
    await serve(engine, "d2")  # it is kept, so d2 meets it
    assert await answered(await send(engine, kept)) == ["d1", "d2"]
    assert store.searched == [kept.id, command("z").id]
    await engine.stop()


async def test_under_a_newer_line_a_command_is_searched_again() -> None:
    """R5: a move may have brought devices here. Its caller is answered after that."""
    store = BusyStore()
    engine = await engine_on(store)
    store.go.set()
    kept = command("a")
    assert await answered(await send(engine, kept)) == []
    store.go.clear()
    await engine.step(HearLines((replace(LINE, epoch=2),), ()))
    again = await send(engine, kept, epoch=2)
    assert not again.found.is_set() and not again.confirmed.is_set()
    store.go.set()
    assert await answered(again) == []
    assert store.searched == [kept.id, kept.id]
    await engine.stop()


async def test_who_comes_while_it_is_searched_is_not_answered_by_that_search() -> None:
    store = BusyStore()
    engine = await engine_on(store)
    fleeting = command("a", 0.0)
    await send(engine, fleeting)
    await store.begun.wait()
    await serve(engine, "d1")
    again = await send(engine, fleeting)
    store.begun.clear()
    store.go.set()
    store.go.clear()  # only the search that waits goes on
    await store.begun.wait()
    assert store.searched == [fleeting.id, fleeting.id]
    assert not again.found.is_set()
    store.go.set()
    assert await answered(again) == ["d1"]
    await engine.stop()


async def test_commands_nobody_waits_for_are_searched_only_if_they_are_kept() -> None:
    store = BusyStore()
    engine = await engine_on(store)
    kept, fleeting = command("b"), command("c", 0.0)
    await send(engine, command("a"))
    for sent in (kept, fleeting):
        await send(engine, sent)
        engine.delivering.commands.handovers.forget(sent.id)
    last = await send(engine, command("z"))
    store.go.set()
    await answered(last)
    assert store.searched == [command("a").id, kept.id, command("z").id]
    await engine.stop()


async def test_a_family_s_queue_is_limited_and_what_is_in_it_may_come_again() -> None:
    store = BusyStore()
    engine = await engine_on(store, replace(CONFIG, max_family_commands=2))
    await send(engine, command("a"))
    await store.begun.wait()
    waiting = [await send(engine, command(name)) for name in "bc"]
    with pytest.raises(Overloaded, match="2 commands of truck/load wait"):
        await send(engine, command("d"))
    assert command("d").id not in engine.writer.templates
    again = await send(engine, command("c"))
    other = await send(engine, replace(command("e"), family=Family("aircon", "power")))
    store.go.set()
    for handover in (*waiting, again, other):
        assert await answered(handover) == []
    assert await answered(await send(engine, command("d"))) == []
    await engine.stop()


async def test_calls_that_wait_for_devices_are_limited() -> None:
    engine = await engine_on(BusyStore(), replace(CONFIG, max_commands=2))
    for name in "ab":
        await send(engine, command(name))
    with pytest.raises(Overloaded):
        await send(engine, command("c"))
    engine.delivering.commands.handovers.forget(command("a").id)
    await send(engine, command("c"))
    await engine.stop()


async def test_devices_are_told_in_portions_of_bytes_each_in_one_of_them() -> None:
    """Sixty thousand of them with the longest addresses were more than a message may hold."""
    engine = await engine_on(MemoryStore(), replace(CONFIG, receipt_portion_bytes=60))
    calls = ServerCalls(engine, "here")
    for address in ("d5", "d1", "d3", "d4", "d2"):
        await serve(engine, address)
    asked = templates_to_wire([packed(command("a"))], epochs={FAMILY: 1})
    request, answer = pb.CommandRequest(command=asked), pb.CommandAnswer(more=True)
    told: list[str] = []
    portions: list[int] = []
    while answer.more:
        answer = await calls.command(request)
        told += [device.address for device in answer.devices]
        portions.append(len(answer.devices))
        request.retry, request.after = True, answer.devices[-1].id
    assert told == ["d1", "d2", "d3", "d4", "d5"]
    assert portions == [3, 2]
    await engine.stop()
