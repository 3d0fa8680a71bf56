"""What devices have acknowledged at servers that were drained since: noted by the ids of commands."""

from __future__ import annotations

from tests.twins.servers import Servers
from tests.unit.server.delivering.test_dispatcher import drained
from tests.unit.server.moving.test_moves import FAMILY, WHOLE, ca, cf, template
from utuple.cluster.line import Line, Member
from utuple.cluster.move import Move, MoveKind
from utuple.model.columns import columns_of
from utuple.server.delivering.acknowledged import AcknowledgedElsewhere
from utuple.server.delivering.outbox import CommandSending
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.wire import utuple_pb2 as pb

FIRST, SECOND = b"1" * 16, b"2" * 16
LAMP, FAN = b"l" * 16, b"f" * 16


def durable(held: AcknowledgedElsewhere) -> dict[str, bytes]:
    return {name: body for name, body in held.pop_unsaved().items() if body is not None}


def test_what_was_acknowledged_elsewhere_is_known_after_a_restart() -> None:
    held = AcknowledgedElsewhere()
    held.learn(LAMP, [FIRST, SECOND])
    held.learn(FAN, [FIRST])
    again = AcknowledgedElsewhere()
    again.restore(durable(held), {FIRST, SECOND})
    assert again.has(LAMP, FIRST) and again.has(LAMP, SECOND) and again.has(FAN, FIRST)
    assert not again.has(FAN, SECOND) and again.devices == {LAMP, FAN} and not again.unsaved
    again.learn(LAMP, [FIRST])
    assert not again.unsaved, "it is no news"


def test_it_goes_with_the_command_and_with_the_device() -> None:
    held = AcknowledgedElsewhere()
    held.learn(LAMP, [FIRST, SECOND])
    held.learn(FAN, [FIRST])
    notes = durable(held)
    held.forget(LAMP)
    assert not held.has(LAMP, FIRST) and held.has(FAN, FIRST)
    held.forget(FIRST)
    assert not held.has(FAN, FIRST) and held.devices == set()
    gone = AcknowledgedElsewhere()
    gone.restore(notes, {SECOND})
    assert gone.devices == {LAMP} and list(gone.unsaved.values()) == [None, None]


async def given(engine: Engine, device: bytes) -> list[bytes]:
    """The commands this device is given when it comes, and no one remembers what it had."""
    stream, outbox = engine.delivering.open_stream()
    await engine.delivering.attach_device(stream, device, 100, after=None)
    came = await drained(outbox)
    engine.delivering.close_stream(stream)
    return [item.command for item in came if isinstance(item, CommandSending)]


async def test_what_a_device_acknowledged_goes_with_a_drain_and_survives_the_heirs_restart() -> (
    None
):
    servers = Servers()
    a, _ = await servers.start("a", Line(WHOLE, 1, (Member("a"),))), await servers.start("b")
    await a.register(Request(devices=columns_of([cf(50)]), epochs={FAMILY: 1}))
    await template(a, 1, ca(200))
    assert await given(a, cf(50).id) == [ca(200).id]
    a.delivering.acknowledge(cf(50).id, "", a.writer.templates[ca(200).id].seq)
    asked = pb.CommandedRequest(device=cf(50).id)
    assert (await servers.wires.calls["a"].commanded(asked)).acknowledged == ca(200).id
    await template(a, 1, ca(201))
    await servers.make("a", Move(MoveKind.HELP_MEMORY, WHOLE, 1, "a", "b"))
    await servers.make("a", Move(MoveKind.DRAIN, WHOLE, 2, "a", "b"))
    await servers.drained("a")
    await servers.crash("b")
    b = await servers.start("b")
    assert await given(b, cf(50).id) == [ca(201).id]
    assert (await servers.wires.calls["b"].commanded(asked)).acknowledged == ca(200).id
    looked = await servers.wires.calls["b"].commanded(pb.CommandedRequest(id=ca(200).id))
    assert [one.handed for one in looked.devices] == [pb.ACKNOWLEDGED]
    await servers.stop()
