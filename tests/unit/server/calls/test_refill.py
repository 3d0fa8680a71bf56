"""Section 3.2 of the paper: an sCA server is sent the devices of its share, and no others."""

from __future__ import annotations

import pytest

from tests.unit.server.writing.test_engine import FAMILY, engine_on
from utuple.cluster.shares import Shares
from utuple.errors import InvalidInput
from utuple.model.columns import columns_of
from utuple.model.utuple import Exact, UTuple
from utuple.server.calls.handlers import ServerCalls
from utuple.server.writing.request import Request
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_from_wire

ROOMS = [f"room-{number}" for number in range(60)]


async def sent(request: pb.DevicesRequest) -> list[str]:
    engine = await engine_on(MemoryStore())
    devices = (
        UTuple(number.to_bytes(16, "big"), FAMILY, Exact(room, 1), None, {}, 60, "r")
        for number, room in enumerate(ROOMS)
    )
    await engine.register(Request(devices=columns_of(devices), epochs={FAMILY: 1}))
    try:
        found = [columns async for columns in ServerCalls(engine, "here").devices(request)]
    finally:
        await engine.stop()
    return [address for one in found for address in columns_from_wire(one)[0].addresses]


@pytest.mark.parametrize("names", [["sca-1"], ["sca-1", "sca-2"], ["sca-1", "sca-2", "sca-3"]])
async def test_each_sca_server_is_sent_what_belongs_to_it_and_no_other(names: list[str]) -> None:
    shares = Shares(names)
    for name in names:
        own = [room for room in ROOMS if shares.owner(FAMILY, room) == name]
        assert own and await sent(pb.DevicesRequest(scas=names, share_of=name)) == own


async def test_one_that_names_nobody_is_sent_every_device() -> None:
    """An sCA server of an earlier version."""
    assert await sent(pb.DevicesRequest()) == ROOMS


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.DevicesRequest(scas=["sca-1"], share_of="sca-9"), "share_of"),
        (pb.DevicesRequest(scas=["sca-1"]), "share_of"),
        (pb.DevicesRequest(share_of="sca-1"), "share_of"),
        (pb.DevicesRequest(scas=["sca-1", ""], share_of="sca-1"), "scas"),
        (pb.DevicesRequest(scas=[f"sca-{n}" for n in range(1001)], share_of="sca-1"), "scas"),
    ],
)
async def test_a_share_of_nobody_is_refused(request_: pb.DevicesRequest, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await sent(request_)
    assert caught.value.field == field
