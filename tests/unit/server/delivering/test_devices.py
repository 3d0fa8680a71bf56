"""What a device was given, when its program comes back."""

from __future__ import annotations

import pytest

from utuple.model.columns import Columns
from utuple.server.delivering.devices import Device, Devices

DEVICE, COMMAND = b"d" * 16, b"c" * 16


def device(stream: int) -> Device:
    return Device(DEVICE, "r", stream, Columns(), 10, 0, 60, 60)


@pytest.mark.parametrize(
    ("confirmed", "stream", "given_again"),
    [(False, 1, True), (True, 1, False), (False, 2, True), (True, 2, True)],
)
def test_what_may_not_have_arrived_is_given_again(
    confirmed: bool, stream: int, given_again: bool
) -> None:
    devices = Devices()
    devices.attach(device(1))
    assert devices.give(DEVICE, COMMAND)
    if confirmed:
        devices.confirm(DEVICE, COMMAND)
    devices.attach(device(stream))
    assert devices.give(DEVICE, COMMAND) is given_again
