"""Simple commands to many devices."""

from __future__ import annotations

from typing import Any

import pytest

from tests.twins.cluster import TwinCluster, one_line
from tests.twins.server import TwinSca
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.receiving.test_device import POWER, ROOM, space_of
from utuple.client.sending import command_many
from utuple.client.sending.receipt import Receipts
from utuple.errors import InvalidInput, OutcomeUnknown, Unavailable

ROOMS = 12


def order(number: int, **said: Any) -> dict[str, Any]:
    return {**POWER, "address": f"room-{number}", "data": {"on": True, "n": number}, **said}


@in_virtual_time
@pytest.mark.parametrize("slice_rows", [1, 5, 2_048])
@pytest.mark.parametrize("servers", [1, 3])
async def test_each_command_has_its_receipt_in_the_order_they_were_given(
    monkeypatch: pytest.MonkeyPatch, slice_rows: int, servers: int
) -> None:
    monkeypatch.setattr(command_many, "SLICE_ROWS", slice_rows)
    cluster = TwinCluster(one_line(1, "a"))
    cluster.sca |= {f"sca-{n}": TwinSca(f"sca-{n}") for n in range(1, servers + 1)}
    space = await space_of(cluster).open()
    rooms = [space.serve(**{**ROOM, "address": f"room-{n}"}) for n in range(ROOMS)]
    for room in rooms:
        await room.open()
    receipts = await space.command_many(order(n) for n in range(-1, ROOMS + 1))
    assert (len(receipts), receipts.matched, receipts.handed_over) == (ROOMS + 2, ROOMS, ROOMS)
    assert not receipts[0] and not receipts[-1]
    assert "room--1" in str(receipts[0]) and f"room-{ROOMS}" in str(receipts[-1])
    for number, receipt in enumerate(receipts[1:-1]):
        assert [device.address for device in receipt.devices] == [f"room-{number}"]
        assert receipt.handed_over == 1
    for number, room in enumerate(rooms):
        assert (await anext(room)).data == {"on": True, "n": number}
    assert all(sca.calls for sca in cluster.sca.values())
    await space.close()


@in_virtual_time
async def test_one_that_is_wrong_is_named_and_its_slice_is_not_sent() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("address", order(1, address="")),
        ("lifetime_s", order(1, lifetime_s=60)),
        ("data.x", order(1, data={"x": float("nan")})),
        ("subject", order(1, subject=7)),
    ]
    for field, command in wrong:
        with pytest.raises(InvalidInput) as caught:
            await space.command_many([order(0), command])
        assert caught.value.field == f"commands[1].{field}"
    with pytest.raises(InvalidInput, match=r"commands\[0\]\.address: None"):
        await space.command_many([{**POWER, "data": {}}])
    assert cluster.sca["sca-1"].calls == 0
    assert len(await space.command_many([])) == 0
    await space.close()


@in_virtual_time
async def test_what_was_not_answered_can_be_tried_again_and_is_delivered_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_many, "SLICE_ROWS", 4)
    monkeypatch.setattr(command_many, "SLICES_IN_FLIGHT", 1)
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**{**ROOM, "address": "room-5"}) as room:

        def losing_all_but_the_first_slice() -> Any:
            for number in range(12):
                if number == 11:
                    cluster.losing = {"sca-1": 1000}
                yield order(number)

        with pytest.raises(OutcomeUnknown, match="4 of 12 commands were answered") as caught:
            await space.command_many(losing_all_but_the_first_slice())
        cluster.losing = {}
        receipts = await space.retry(caught.value)
        assert isinstance(receipts, Receipts)
        assert [receipt.handed_over for receipt in receipts] == [0, 1, 0, 0, 0, 0, 0, 0]
        assert (await anext(room)).data == {"on": True, "n": 5}
        await space.command(**POWER, address="room-5", data={"on": False})
        assert (await anext(room)).data == {"on": False}, "and once only"
    await space.close()


@in_virtual_time
async def test_without_an_sca_server_nothing_was_sent() -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    cluster.cut("sca-1")
    with pytest.raises(Unavailable):
        await space.command_many([order(1)])
    await space.close()
