"""What is left of earlier layouts of a partitioned line, between real engines on in-memory stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.twins.servers import Servers, until
from tests.unit.server.moving.test_moves import (
    FAMILY,
    WHOLE,
    ca,
    ea,
    ef,
    line_at,
    order,
    template,
)
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind
from utuple.cluster.past import Past
from utuple.model.columns import columns_of
from utuple.model.condition import at_least, below
from utuple.model.utuple import UTuple
from utuple.server.moving.notes import KeptNotes, Shipment
from utuple.server.moving.participant import Participant
from utuple.server.moving.steps import Prune
from utuple.server.writing.engine import Engine
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.request import Request
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import move_to_wire

LIGHT = replace(ef(100), where={"n": below(5)})
HEAVY = replace(ef(101), where={"n": at_least(5)})
BY_N = Layout((Axis("data.n", (5,), (("b", "a"), ("c", "a"))),))
COMMAND = ca(200)


async def store(engine: Engine, event: UTuple) -> None:
    epoch = line_at(engine).epoch
    request = Request(events=columns_of([event]), epochs={FAMILY: epoch})
    assert not (await engine.register(request)).refusals


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    """Three that are on, each with every EF; `c` holds an event."""
    made = Servers()
    await made.start("a", Line(WHOLE, 1, (Member("a"),)))
    for name in ("b", "c"):
        await made.start(name)
    for one in (LIGHT, HEAVY, COMMAND):
        await template(made.engines["a"], 1, one)
    for epoch, name in enumerate(("b", "c"), 1):
        await made.make("a", order(MoveKind.HELP_PROCESSING, epoch, "a", name))
    await store(made.engines["c"], ea(1))
    yield made
    await made.stop()


async def partition(servers: Servers) -> None:
    epoch = line_at(servers.engines["a"]).epoch
    await servers.make("a", Move(MoveKind.PARTITION, WHOLE, epoch, "a", layout=BY_N))


def known(servers: Servers, name: str) -> set[bytes]:
    return set(servers.engines[name].writer.templates)


async def test_who_holds_nothing_of_the_time_before_is_left_out_and_forgets_what_is_not_its_share(
    servers: Servers,
) -> None:
    """The home sees to it by itself. Who still holds an event keeps every EF: a reader may be away that has not got it."""
    a, c = servers.engines["a"], servers.engines["c"]
    await partition(servers)
    await until(lambda: known(servers, "b") == {LIGHT.id, COMMAND.id}, "b has forgotten")
    assert line_at(a).past == (Past(NO_LAYOUT, (("c", c.writer.seq),)),)
    assert line_at(a).visited(LIGHT) == {"a", "b", "c"} and line_at(a).visited(HEAVY) == {"a", "c"}
    assert known(servers, "a") == known(servers, "c") == {LIGHT.id, HEAVY.id, COMMAND.id}
    await servers.crash("b")
    recovered = await servers.start("b")
    assert set(recovered.writer.templates) == {LIGHT.id, COMMAND.id}, "durable"


async def test_what_came_by_the_layout_of_today_keeps_nobody_in(servers: Servers) -> None:
    """Only what a member held when it heard of the layout counts, however much comes since."""
    a, c = servers.engines["a"], servers.engines["c"]
    await partition(servers)
    await until(lambda: line_at(a).past[0].upto is not None, "everyone was asked")
    await until(lambda: line_at(c).epoch == line_at(a).epoch, "c has heard")
    await store(c, ea(9))
    ((_, upto),) = line_at(a).past[0].upto or ()
    held = servers.stores["c"]._events
    held[:] = [row for row in held if row.seq > upto]  # the others have expired
    a.move_driver.older.lines_changed.set()
    await until(lambda: not line_at(a).past, "nothing is left")
    await until(lambda: known(servers, "c") == {HEAVY.id, COMMAND.id}, "c has forgotten")


async def test_while_a_member_is_silent_nothing_is_forgotten(servers: Servers) -> None:
    """It may not have heard, and take any event."""
    servers.wires.down.add("b")
    epoch = line_at(servers.engines["a"]).epoch
    await servers.order("a", Move(MoveKind.PARTITION, WHOLE, epoch, "a", layout=BY_N))
    await until(lambda: bool(line_at(servers.engines["a"]).layout.axes), "committed")
    answer = await servers.wires.calls["a"].move(prune_of(servers))
    assert not answer.accepted and "nothing listens at b" in answer.reason
    assert line_at(servers.engines["a"]).past == (Past(NO_LAYOUT),)
    servers.wires.down.clear()
    await until(lambda: known(servers, "b") == {LIGHT.id, COMMAND.id}, "b has forgotten")


def prune_of(servers: Servers) -> pb.Move:
    line = line_at(servers.engines["a"])
    return move_to_wire(Move(MoveKind.PRUNE, WHOLE, line.epoch, "a"))


async def test_efs_are_forgotten_by_the_line_of_now_alone(servers: Servers) -> None:
    await partition(servers)
    await until(lambda: known(servers, "b") == {LIGHT.id, COMMAND.id}, "b has forgotten")
    b = servers.engines["b"]
    older = replace(line_at(b), epoch=line_at(b).epoch - 1)
    assert not (await b.step(Prune(older, [LIGHT.id]))).done
    assert LIGHT.id in b.writer.templates


def test_who_learns_or_brings_its_rows_away_or_holds_earlier_events_forgets_nothing() -> None:
    own = Line(WHOLE, 4, tuple(map(Member, "abc")), BY_N)

    def member(line: Line = own) -> Participant:
        return Participant("b", OwnLines("b", [line], []), KeptNotes())

    assert member().may_prune(own).done
    promised, leaving = member(), member()
    promised.promises[bytes(16)] = (replace(own, epoch=5, layout=NO_LAYOUT),)
    leaving.shipments[bytes(16)] = Shipment(WHOLE, "a")
    assert promised.may_prune(own).reason == "it learns"
    assert leaving.may_prune(own).reason == "its rows are brought away"
    holding = replace(own, past=(Past(NO_LAYOUT, (("b", 3),)),))
    assert not member(holding).may_prune(holding).done
    home = replace(own, members=tuple(map(Member, "bac")), layout=NO_LAYOUT)
    assert not member(home).may_prune(home).done
