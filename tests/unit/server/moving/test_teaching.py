"""What a learner is taught: everything, whatever overtakes what and whatever comes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.twins.servers import Servers, Wires
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind
from utuple.model.condition import Equal
from utuple.model.key import HASH_SPACE
from utuple.model.packed import packed
from utuple.model.section import Section
from utuple.model.utuple import Family, Template, UTuple
from utuple.runtime.channel import MAX_MESSAGE_BYTES
from utuple.server.moving import teaching
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.wire import utuple_pb2 as pb

FAMILY = Family("truck", "load")
WHOLE = Section(0, HASH_SPACE)
HELP = Move(MoveKind.HELP_PROCESSING, WHOLE, 1, "a", "b")


def ef(number: int) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Template(), None, {}, 600, "r")


async def keep(engine: Engine, *numbers: int) -> None:
    templates = [(row, packed(ef(number))) for row, number in enumerate(numbers)]
    answer = await engine.register(Request(templates=templates, epochs={FAMILY: 1}))
    assert not answer.refusals


class Hooked(Wires):
    """Portions on their way to the learner, in the hands of a test."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.before_arrival: Callable[[pb.LearnRequest], Awaitable[None]] | None = None
        self.after_arrival: Callable[[pb.LearnRequest], None] | None = None

    async def call(self, address: str, method: str, request: Any, timeout_s: float) -> Any:
        if method != "learn":
            return await super().call(address, method, request, timeout_s)
        self.sizes.append(len(request.templates.metadata))
        if self.before_arrival is not None:
            await self.before_arrival(request)
        answer = await super().call(address, method, request, timeout_s)
        if self.after_arrival is not None:
            self.after_arrival(request)
        return answer


async def started(wires: Hooked, portion: int) -> tuple[Servers, Engine, Engine]:
    servers = Servers(wires=wires)
    a = await servers.start("a", Line(WHOLE, 1, (Member("a"),)))
    a.config = replace(a.config, teach_portion=portion)
    return servers, a, await servers.start("b")


async def test_everything_goes_in_portions() -> None:
    wires = Hooked()
    servers, a, b = await started(wires, 2)
    await keep(a, *range(1, 8))
    record = await servers.make("a", HELP)
    assert wires.sizes == [2, 2, 2, 1]
    assert record.copied == 7 and b.writer.templates.keys() == a.writer.templates.keys()
    await servers.stop()


def large_ef(number: int) -> UTuple:
    """As some were taken before there was a limit on a template's bytes, and a little below it."""
    where = {"note": Equal("x" * 300_000)}
    return UTuple(number.to_bytes(16, "big"), FAMILY, Template(), None, where, 600, "r")


@pytest.mark.parametrize("come_late", [False, True])
async def test_large_efs_go_in_portions_that_every_program_takes(come_late: bool) -> None:
    """260 of 300 kB were one message of 78,038,931 bytes, sent again and again."""
    wires = Hooked()
    servers, a, b = await started(wires, 4_000)
    bytes_sent: list[int] = []
    templates = [(row, packed(large_ef(row + 1))) for row in range(260)]
    large = Request(templates=templates, epochs={FAMILY: 1})

    async def meanwhile(request: pb.LearnRequest) -> None:
        bytes_sent.append(request.ByteSize())
        if come_late and len(bytes_sent) == 1:
            await a.register(large)

    if not come_late:
        await a.register(large)
    wires.before_arrival = meanwhile
    record = await servers.make("a", HELP)
    assert record.copied == 260 and b.writer.templates.keys() == a.writer.templates.keys()
    assert max(bytes_sent) <= MAX_MESSAGE_BYTES // 8
    await servers.stop()


async def test_changes_go_in_portions_too() -> None:
    wires = Hooked()
    servers, a, b = await started(wires, 2)
    await keep(a, 1)

    async def meanwhile(request: pb.LearnRequest) -> None:
        if request.number == 0:
            await keep(a, *range(2, 9))

    wires.before_arrival = meanwhile
    record = await servers.make("a", HELP)
    assert max(wires.sizes) == 2
    assert record.copied == 8 and b.writer.templates.keys() == a.writer.templates.keys()
    await servers.stop()


async def test_a_portion_that_was_overtaken_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teaching, "_IN_FLIGHT", 4)
    wires = Hooked()
    servers, a, b = await started(wires, 2)
    await keep(a, *range(1, 10))
    overtaken = asyncio.Event()

    async def hold_up(request: pb.LearnRequest) -> None:
        if request.number == 1:
            await overtaken.wait()

    def arrived(request: pb.LearnRequest) -> None:
        if request.number == 2:
            overtaken.set()

    wires.before_arrival, wires.after_arrival = hold_up, arrived
    record = await servers.make("a", HELP)
    assert len(wires.sizes) > 5, "some were sent twice"
    assert record.copied == 9 and b.writer.templates.keys() == a.writer.templates.keys()
    await servers.stop()


async def test_what_comes_while_the_rest_is_sent_lies_behind_the_cut() -> None:
    """Law 2: it must be taught as well before the commit."""
    wires = Hooked()
    servers, a, b = await started(wires, 100)
    coming = iter((2, 3, 4))

    async def meanwhile(_: pb.LearnRequest) -> None:
        number = next(coming, None)
        if number is not None:
            await keep(a, number)

    await keep(a, 1)
    wires.before_arrival = meanwhile
    record = await servers.make("a", HELP)
    assert a.writer.templates.keys() == {ef(number).id for number in (1, 2, 3, 4)}
    assert b.writer.templates.keys() == a.writer.templates.keys()
    assert record.copied == 4
    await servers.stop()
