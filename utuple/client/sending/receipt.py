"""What became of a command, device by device."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from utuple.client.sending.rows import Commands
from utuple.model.utuple import ID_BYTES
from utuple.model.value import decode_data
from utuple.wire import utuple_pb2 as pb

_REASONS: dict[int, str] = {
    pb.HANDED_OVER: "",
    pb.NOT_CONFIRMED: "not confirmed",
    pb.NOT_CONNECTED: "not connected",
}
_BEST_FIRST = (pb.HANDED_OVER, pb.NOT_CONFIRMED, pb.NOT_CONNECTED)
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class DeviceReceipt:
    """One device that matched the command."""

    address: str
    handed_over: bool
    reason: str = ""
    """Why it was not handed over: "not connected" or "not confirmed" (sent, no word in time)."""

    def __str__(self) -> str:
        return self.address if self.handed_over else f"{self.address} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The devices a command matched; true if there was at least one.

    `print(receipt)` says it in words: who got it, who did not and why, and how long it waits for others.
    """

    command: str
    """What was commanded, in words."""
    devices: tuple[DeviceReceipt, ...] = ()
    waits_s: float = 0.0
    """Devices that come within this time of sending get it too: the command's `lifetime_s`."""

    @property
    def matched(self) -> int:
        return len(self.devices)

    @property
    def handed_over(self) -> int:
        return sum(device.handed_over for device in self.devices)

    def __bool__(self) -> bool:
        return self.matched > 0

    def __str__(self) -> str:
        if not self.devices:
            none = (
                f"no device yet; waits {self.waits_s:g} s" if self.waits_s else "no device matched"
            )
            return f"{none}: {self.command}"
        said = f"handed over to {self.handed_over} of {self.matched} devices"
        missed = [str(device) for device in self.devices if not device.handed_over]
        if missed:
            more = f" and {len(missed) - _SHOWN} more" if len(missed) > _SHOWN else ""
            said += f"; missed: {', '.join(missed[:_SHOWN])}{more}"
        return said + (f"; waits {self.waits_s:g} s for others" if self.waits_s else "")


@dataclass(frozen=True, slots=True)
class Handovers:
    """Which commands of a slice met which devices, as columns: there may be a million."""

    rows: Sequence[int]
    """Ascending."""
    ids: bytes
    """16 bytes each: of the CF."""
    handed: bytes
    """One byte each: a `Handed`."""

    def __iter__(self) -> Iterator[tuple[int, bytes, int]]:
        for at, (row, handed) in enumerate(zip(self.rows, self.handed, strict=True)):
            yield row, self.ids[at * ID_BYTES : (at + 1) * ID_BYTES], handed

    def between(self, first: int, end: int) -> Handovers:
        """Of these rows, counted from the first."""
        rows = self.rows
        begin, stop = bisect_left(rows, first), bisect_left(rows, end)
        return Handovers(
            [row - first for row in rows[begin:stop]],
            self.ids[begin * ID_BYTES : stop * ID_BYTES],
            self.handed[begin:stop],
        )

    def of(self, row: int, address: str) -> list[pb.Handover]:
        return [
            pb.Handover(id=id_, address=address, handed=pb.Handed.ValueType(handed))
            for _, id_, handed in self.between(row, row + 1)
        ]


class Receipts(Sequence[Receipt]):
    """Of many commands, in their order; each is made when it is looked at."""

    def __init__(self) -> None:
        self._slices: list[tuple[Commands, Handovers]] = []
        self._starts: list[int] = []
        self._commands = 0

    def add(self, commands: Commands, handovers: Handovers) -> None:
        """The next slice, and which of its commands met which devices."""
        self._slices.append((commands, handovers))
        self._starts.append(self._commands)
        self._commands += len(commands.addresses)

    @property
    def matched(self) -> int:
        """Commands that met at least one device."""
        return sum(len(set(met.rows)) for _, met in self._slices)

    @property
    def handed_over(self) -> int:
        """Commands that a device has."""
        return sum(
            len(
                {
                    row
                    for row, handed in zip(met.rows, met.handed, strict=True)
                    if handed == pb.HANDED_OVER
                }
            )
            for _, met in self._slices
        )

    def __len__(self) -> int:
        return self._commands

    @overload
    def __getitem__(self, at: int) -> Receipt: ...

    @overload
    def __getitem__(self, at: slice) -> list[Receipt]: ...

    def __getitem__(self, at: int | slice) -> Receipt | list[Receipt]:
        numbers = range(self._commands)[at]
        if isinstance(numbers, range):
            return [self._receipt(number) for number in numbers]
        return self._receipt(numbers)

    def _receipt(self, number: int) -> Receipt:
        at = bisect_right(self._starts, number) - 1
        (commands, met), row = self._slices[at], number - self._starts[at]
        family = commands.families[commands.family[row]]
        data = decode_data(commands.payloads[row])
        address = commands.addresses[row]
        words = f"{'/'.join(family)} at {address!r} with {data}"
        return receipt_of(words, met.of(row, address))

    def __repr__(self) -> str:
        return f"<{self._commands} commands, {self.handed_over} handed over>"


def receipt_of(command: str, handovers: Iterable[pb.Handover], waits_s: float = 0.0) -> Receipt:
    """One line per CF: a device that several members answer for counts by its best answer."""
    best: dict[bytes, pb.Handover] = {}
    for handover in handovers:
        known = best.get(handover.id)
        if known is None or _rank(handover) < _rank(known):
            best[handover.id] = handover
    devices = sorted(best.values(), key=lambda handover: (handover.address, handover.id))
    return Receipt(
        command,
        tuple(
            DeviceReceipt(
                device.address,
                device.handed == pb.HANDED_OVER,
                _REASONS.get(device.handed, "not confirmed"),
            )
            for device in devices
        ),
        waits_s,
    )


def _rank(handover: pb.Handover) -> int:
    return _BEST_FIRST.index(handover.handed) if handover.handed in _BEST_FIRST else 1
