"""The thermostat and the air-quality alarm, with devices, on a real cluster."""

from __future__ import annotations

from typing import Any

import pytest

from examples.air_quality import main as alarm
from examples.air_quality import place
from examples.thermostat import main as thermostat
from examples.thermostat import wanted
from utuple.client.space import Space
from utuple.testing.cluster import TestCluster


@pytest.mark.parametrize(
    ("degrees", "on", "then"),
    [(28, False, True), (25, True, True), (25, False, False), (24, True, False)],
)
def test_between_the_thresholds_a_room_is_left_as_it_is(
    degrees: float, on: bool, then: bool
) -> None:
    assert wanted(degrees, on, 27, 24) is then


async def test_a_warm_room_is_cooled_until_it_is_cool(
    utuple_cluster: TestCluster, utuple_space: Space
) -> None:
    async with utuple_space.serve(subject="aircon", type="power", address="room-1") as commands:
        for degrees in (26, 28, 25, 23):
            await utuple_space.emit(
                subject="room", type="temperature", address="room-1", data={"degrees": degrees}
            )
        assert await thermostat(utuple_cluster.at, 27, 24, readings=4) == {"room-1": False}
        got = [command.data["on"] for command in await commands.take(1, timeout_s=30)]
        got += [command.data["on"] for command in await commands.take(1, timeout_s=30)]
    assert got == [True, False]


async def test_bad_air_sounds_the_sirens_of_its_place_only(
    utuple_cluster: TestCluster, utuple_space: Space
) -> None:
    here, far = (30.27, -97.74), (48.1, 11.6)
    siren: dict[str, Any] = {"subject": "siren", "type": "sound"}
    async with (
        utuple_space.serve(**siren, address="near", position=here) as near,
        utuple_space.serve(**siren, address="far", position=far) as other,
    ):
        for address, position, value in (("a", here, 20), ("b", far, 90), ("c", here, 60)):
            await utuple_space.emit(
                subject="air",
                type="pm25",
                address=address,
                position=position,
                data={"ug_m3": value},
            )
        assert await alarm(utuple_cluster.at, place("30.27,-97.74,5km"), 35, alarms=1) == 1
        (heard,) = await near.take(1, timeout_s=30)
        assert heard.data == {"because": "c"}
        assert await other.take(1, timeout_s=0.2) == []
