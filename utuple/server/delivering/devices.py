"""Devices: the attached CFs, which commands each was given, and who waits for a confirmation. Pure.

A CF's matches are CAs, which are few and in memory: a device that comes back is matched with them anew,
after the position it acknowledged. A CA of lifetime 0 reaches the devices that are connected.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from utuple.model.columns import Columns

_MAX_REMEMBERED = 10_000
"""Commands remembered per device, so that none is given twice."""


@dataclass(slots=True)
class Device:
    id: bytes
    reader: str
    stream: int
    row: Columns
    """The CF itself, as a batch of one."""
    window: int
    after: int
    """CAs up to this seq were acknowledged before it attached."""
    lifetime_us: int
    generation: int = 0
    """Whose it is: another opening of the same reader has another."""
    window_bytes: int = 0
    """0: its program counts rows only."""
    outstanding: int = 0
    outstanding_bytes: int = 0
    starved: bool = False
    """A command found no room: match again when there is some."""
    given: OrderedDict[bytes, bool] = field(default_factory=OrderedDict)
    """Commands given, and whether the device's program has confirmed them."""

    @property
    def has_room(self) -> bool:
        if self.window_bytes and self.outstanding_bytes >= self.window_bytes:
            return False
        return self.outstanding < self.window

    @property
    def is_taking(self) -> bool:
        """Its program has taken at least half of a window."""
        many_bytes = self.window_bytes and self.outstanding_bytes > self.window_bytes // 2
        return self.outstanding <= self.window // 2 and not many_bytes


def device_at(
    row: Columns,
    formal: bytes,
    stream: int,
    generation: int,
    after: int,
    window: int,
    window_bytes: int,
) -> Device:
    """The CF of this row, attached on this stream."""
    reader = row.readers[0] if row.readers else ""
    life_us = row.lifetimes_us[0]
    return Device(formal, reader, stream, row, window, after, life_us, generation, window_bytes)


class Devices:
    def __init__(self) -> None:
        self._devices: dict[bytes, Device] = {}

    def __iter__(self) -> Iterator[Device]:
        return iter(list(self._devices.values()))

    def get(self, id_: bytes) -> Device | None:
        return self._devices.get(id_)

    def attach(self, device: Device) -> None:
        held = self._devices.get(device.id)
        if held is not None:
            # What went out on another stream, or was not confirmed, may never have arrived: it is given
            # again, and the device's program drops what it has.
            same = held.stream == device.stream and held.generation == device.generation
            kept = [command for command, has_it in held.given.items() if same and has_it]
            device.given = OrderedDict.fromkeys(kept, True)
        self._devices[device.id] = device

    def detach(self, id_: bytes) -> None:
        self._devices.pop(id_, None)

    def give(self, id_: bytes, command: bytes, weight: int = 0) -> bool:
        """Is this command to be sent to this device now?"""
        device = self._devices.get(id_)
        if device is None or command in device.given:
            return False
        if not device.has_room:
            device.starved = True
            return False
        device.outstanding += 1
        device.outstanding_bytes += weight
        device.given[command] = False
        while len(device.given) > _MAX_REMEMBERED:
            device.given.popitem(last=False)
        return True

    def confirm(self, id_: bytes, command: bytes) -> None:
        device = self._devices.get(id_)
        if device is not None and command in device.given:
            device.given[command] = True

    def has(self, id_: bytes, command: bytes) -> bool:
        """Has the device's program confirmed this command?"""
        device = self._devices.get(id_)
        return device is not None and device.given.get(command, False)

    def taken(self, id_: bytes, count: int, weight: int = 0) -> bool:
        """There is room again; True if a command had found none and the device is to be matched."""
        device = self._devices.get(id_)
        if device is None:
            return False
        device.outstanding = max(0, device.outstanding - count)
        device.outstanding_bytes = max(0, device.outstanding_bytes - weight)
        hungry = device.starved and device.is_taking
        if hungry:
            device.starved = False
        return hungry
