"""How a command with a lifetime stands, as its receipt says it: nothing that nobody knows."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from tests.twins.cluster import MANAGER, TwinCluster, one_line
from tests.twins.virtual_time import in_virtual_time
from tests.unit.client.receiving.test_device import NEAR, POWER, ROOM, space_of
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.sending.receipt import Receipt, as_known_before, expired, receipt_of
from utuple.client.space import Space
from utuple.errors import OutcomeUnknown
from utuple.wire import utuple_pb2 as pb

LIFETIME_S = 30.0
LEFT_US = 1_000_000


class Told(TwinCluster):
    """Its servers say of commands what they are told to; None: they are silent."""

    said: dict[str, pb.CommandedAnswer | None]

    async def commanded(
        self, address: str, request: pb.CommandedRequest, timeout_s: float
    ) -> pb.CommandedAnswer:
        answer = self.said[address]
        if answer is None:
            await asyncio.sleep(timeout_s)
            raise OutcomeUnknown("no answer")
        return answer


def answer(left_us: int, **devices: pb.Handed.ValueType) -> pb.CommandedAnswer:
    found = [
        pb.Handover(id=name.encode() * 16, address=name, handed=handed)
        for name, handed in devices.items()
    ]
    return pb.CommandedAnswer(known=True, devices=found, left_us=left_us)


def states(receipt: Receipt) -> dict[str, str]:
    return {
        one.address: "acknowledged" if one.acknowledged else one.reason or "has it"
        for one in receipt.devices
    }


async def sent(cluster: Told, notify: str | None = None) -> tuple[Space, Receipt]:
    """With a clock that goes."""
    loop, config = asyncio.get_running_loop(), Config(timeout_s=10.0)
    parts = put_together(
        [MANAGER], config, cluster, random.Random(7), lambda: round(loop.time() * 1e6)
    )
    space = await Space(parts).open()
    asked: dict[str, Any] = {**POWER, "data": {"on": True}, "everywhere": True, "notify": notify}
    return space, await space.command(**asked, lifetime_s=LIFETIME_S)


@in_virtual_time
async def test_what_the_servers_have_forgotten_is_not_known_and_what_was_certain_stays() -> None:
    cluster = Told(one_line(1, "a"))
    space, receipt = await sent(cluster)
    living = {"a": pb.ACKNOWLEDGED, "b": pb.HANDED_OVER, "c": pb.NOT_CONNECTED}
    cluster.said = {"a": answer(LEFT_US, **living)}
    seen = await receipt.refresh()
    cluster.said = {"a": pb.CommandedAnswer()}
    await asyncio.sleep(LIFETIME_S)
    late = await seen.refresh()
    assert states(late) == {"a": "acknowledged", "b": "has it", "c": "not known"}
    assert str(late) == "handed over to 2 of 3 devices; not known: c"
    assert late.look is None and not late.waits_s
    await space.close()


@in_virtual_time
async def test_the_end_is_asked_for_until_who_was_silent_answers() -> None:
    cluster = Told(one_line(1, "a", "b"))
    space, receipt = await sent(cluster)
    cluster.said = dict.fromkeys("ab", answer(LEFT_US, x=pb.NOT_CONNECTED, y=pb.NOT_CONNECTED))
    seen = await receipt.refresh()
    await asyncio.sleep(LIFETIME_S)
    cluster.said = {"a": answer(0, x=pb.NOT_CONNECTED), "b": None}
    silent = await seen.refresh()
    assert states(silent) == {"x": "not known", "y": "not known"}
    assert silent.look is not None, "it can be looked at again"
    assert states(await silent.wait()) == states(silent), "its lifetime is over"
    ending = asyncio.create_task(seen.end())
    await asyncio.sleep(20)
    assert not ending.done()
    cluster.said["b"] = answer(0, y=pb.ACKNOWLEDGED)
    assert states(await ending) == {"x": "expired", "y": "acknowledged"}
    await space.close()


@in_virtual_time
async def test_after_a_minute_of_silence_the_end_is_not_known_and_no_event_says_expired() -> None:
    cluster = Told(one_line(1, "a"))
    cluster.said = {"a": answer(LEFT_US, x=pb.NOT_CONNECTED)}
    space, receipt = await sent(cluster, "expired")
    await asyncio.sleep(LIFETIME_S / 2)
    cluster.said = {"a": None}
    began_s = asyncio.get_running_loop().time()
    assert states(await receipt.end()) == {"x": "not known"}
    assert 60 <= asyncio.get_running_loop().time() - began_s < LIFETIME_S + 90
    assert not cluster.calls, "no event was emitted"
    await space.close()


def test_two_devices_at_one_address_stay_two_and_an_acknowledgement_is_not_taken_back() -> None:
    one, two = b"1" * 16, b"2" * 16
    before = receipt_of("c", [pb.Handover(id=one, address="x", handed=pb.ACKNOWLEDGED)])
    now = [
        pb.Handover(id=one, address="x", handed=pb.HANDED_OVER),
        pb.Handover(id=two, address="x", handed=pb.NOT_CONNECTED),
    ]
    together = as_known_before(receipt_of("c", now), before)
    assert [(d.acknowledged, d.reason) for d in together.devices] == [
        (True, ""),
        (False, "not connected"),
    ]


def test_what_a_server_says_that_kept_no_count_is_no_expiry() -> None:
    said = [
        pb.Handover(id=bytes([n]) * 16, address=str(n), handed=pb.Handed.ValueType(n))
        for n in range(5)
    ]
    assert states(expired(receipt_of("c", said))) == {
        "0": "not known",
        "1": "has it",
        "2": "expired",
        "3": "not confirmed",
        "4": "acknowledged",
    }


@in_virtual_time
@pytest.mark.parametrize("reader", [None, "lamp"])
async def test_what_a_device_has_acknowledged_is_told_whether_it_has_a_name_or_not(
    reader: str | None,
) -> None:
    cluster = TwinCluster(one_line(1, "a"))
    space = await space_of(cluster).open()
    async with space.serve(**ROOM, reader=reader) as commands:
        await space.command(**POWER, area=NEAR, data={"on": True}, lifetime_s=60)
        command = await asyncio.wait_for(anext(commands), 60)
        assert not cluster.servers["a"].acknowledged
        await command.ack()
        await asyncio.sleep(1)
        [seq] = cluster.servers["a"].acknowledged.values()
        assert seq > 0
    await space.close()
