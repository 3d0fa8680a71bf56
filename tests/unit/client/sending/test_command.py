"""To whom a command goes, and what its receipt says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.receiving.test_device import NEAR, POWER, ROOM, space_of
from utuple.errors import InvalidInput
from utuple.model.condition import ANY, at_least, below, between, one_of, prefix


@in_virtual_time
@pytest.mark.parametrize(
    "place",
    [{}, {"address": ANY}, {"address": prefix("")}, {"since": datetime(2026, 1, 1, tzinfo=UTC)}],
)
async def test_a_command_to_every_device_must_be_said(place: dict[str, Any]) -> None:
    """`command` to every device needs `everywhere=True`: a forgotten condition must not reach them all."""
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM) as room:
        with pytest.raises(InvalidInput, match="everywhere=True") as caught:
            await space.command(**POWER, **place, data={"on": False})
        assert (caught.value.field, caught.value.value) == ("everywhere", False)
        assert not any(server.commands for server in cluster.servers.values())
        receipt = await space.command(**POWER, data={"on": True}, everywhere=True)
        assert (receipt.matched, receipt.handed_over) == (1, 1)
        assert (await anext(room)).data == {"on": True}
        with pytest.raises(InvalidInput, match="everywhere: 'no'"):
            await space.command(**POWER, data={"on": True}, everywhere="no")  # type: ignore[arg-type]
    await space.close()


@in_virtual_time
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"address": "room-9"}, "at 'room-9'"),
        ({"address": prefix("hall-")}, "at prefix('hall-')"),
        ({"address": one_of("x", "y")}, "at one_of('x', 'y')"),
        ({"address": one_of(*"abcdefg")}, "at one_of('a', 'b', 'c', 'd', 'e', …)"),
        ({"address": between("x", "y")}, "at between('x', 'y')"),
        ({"address": at_least("x")}, "at at_least('x')"),
        ({"address": below("b")}, "at below('b')"),
        ({"area": NEAR, "address": prefix("hall-")}, f"at prefix('hall-') in {NEAR}"),
        ({"area": NEAR, "since": datetime(2026, 1, 1, tzinfo=UTC)}, "since 2026-01-01T00:00:00"),
        ({"area": NEAR, "until": datetime(1970, 1, 1, tzinfo=UTC)}, "until 1970-01-01T00:00:00"),
        ({"everywhere": True}, "everywhere"),
    ],
)
@pytest.mark.parametrize("lifetime_s", [0, 60])
async def test_a_receipt_names_every_condition_and_whether_the_command_waits(
    place: dict[str, Any], said: str, lifetime_s: float
) -> None:
    space = await space_of(TwinCluster(one_line(1, "a"))).open()
    receipt = await space.command(**POWER, **place, data={"on": True}, lifetime_s=lifetime_s)
    none = "no device yet; waits 60 s" if lifetime_s else "no device matched"
    assert str(receipt).startswith(f"{none}: aircon/power ")
    assert said in str(receipt)
    assert receipt.waits_s == lifetime_s
    await space.close()


@in_virtual_time
async def test_a_receipt_of_some_devices_says_that_it_waits_for_others() -> None:
    space = await space_of(TwinCluster(one_line(1, "a"))).open()
    async with space.serve(**ROOM):
        receipt = await space.command(**POWER, area=NEAR, data={"on": True}, lifetime_s=90)
    assert str(receipt) == "handed over to 1 of 1 devices; waits 90 s for others"
    await space.close()


@in_virtual_time
async def test_devices_that_are_told_in_portions_are_all_in_the_receipt() -> None:
    cluster = TwinCluster(one_line(1, "a", "b"))
    space = await space_of(cluster).open()
    rooms = [f"room-{number}" for number in range(7)]
    open_ = [await space.serve(**{**ROOM, "address": room}).open() for room in rooms]
    for server in cluster.servers.values():
        server.receipts_most = 2
    receipt = await space.command(**POWER, data={"on": True}, everywhere=True)
    assert [device.address for device in receipt.devices] == rooms
    assert (receipt.matched, receipt.handed_over) == (7, 7)
    for commands in open_:
        assert [command.data for command in await commands.take(5)] == [{"on": True}]
    await space.close()
