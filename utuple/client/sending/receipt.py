"""What became of a command, device by device."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import overload
from uuid import UUID

from utuple.client.arguments import check_timeout
from utuple.client.sending.rows import Commands
from utuple.errors import Closed, UTupleError
from utuple.model.utuple import ID_BYTES
from utuple.model.value import decode_data
from utuple.wire import utuple_pb2 as pb

EXPIRED, NOT_KNOWN = "expired", "not known"
_REASONS: dict[int, str] = {
    pb.HANDED_OVER: "",
    pb.ACKNOWLEDGED: "",
    pb.NOT_CONFIRMED: "not confirmed",
    pb.NOT_CONNECTED: "not connected",
    pb.HANDED_UNKNOWN: NOT_KNOWN,
}
_BEST_FIRST = (
    *(pb.ACKNOWLEDGED, pb.HANDED_OVER),
    *(pb.HANDED_UNKNOWN, pb.NOT_CONFIRMED, pb.NOT_CONNECTED),
)
_SHOWN = 5
_FIRST_LOOK_S, _MOST_LOOK_S = 0.2, 5.0
"""Between two looks at a command that waits for its devices."""

_MOST_SILENT_S = 60.0
"""So long somebody who does not answer is asked again: by then servers have forgotten a command that is over."""

Look = Callable[["Receipt"], Awaitable["Receipt"]]


@dataclass(frozen=True, slots=True)
class DeviceReceipt:
    """One device that matched the command."""

    address: str
    handed_over: bool
    reason: str = ""
    """Why it was not handed over: "not connected", "not confirmed" (sent, no word in time), "expired" (it never got it and never
    will), or "not known": its lifetime is over, and no server can say any more."""
    acknowledged: bool = False
    """Its program has said that it is done with it; known of a command with a lifetime, by `refresh`."""
    formal: bytes = field(default=b"", repr=False, compare=False)
    """The id of its CF: two devices may have one address."""

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
    id: UUID | None = None
    """Of a command with a lifetime: what `utuple commands` takes."""
    look: Look | None = field(default=None, repr=False, compare=False)
    ending: asyncio.Task[Receipt] | None = field(default=None, repr=False, compare=False)
    """Of one with `notify="expired"`: what waits for its end."""

    async def refresh(self) -> Receipt:
        """The same command as it stands now: who came since, who has it, who has acknowledged it. When its lifetime is
        over, whoever does not have it never will: "expired". Servers know that for a minute; of whom nobody can say it any
        more, what was known for certain stays, and the rest is "not known"."""
        return self if self.look is None else await self.look(self)

    async def wait(self, timeout_s: float | None = None) -> Receipt:
        """Until it met a device and all that it met have it, its lifetime is over, or so long."""
        check_timeout(timeout_s)
        loop = asyncio.get_running_loop()
        until_s = inf if timeout_s is None else loop.time() + timeout_s
        receipt, pause_s = await self.refresh(), _FIRST_LOOK_S
        while receipt.waits_s > 0 and not receipt.is_done and loop.time() < until_s:
            await asyncio.sleep(min(pause_s, max(0.0, until_s - loop.time())))
            receipt, pause_s = await receipt.refresh(), min(_MOST_LOOK_S, 2 * pause_s)
        return receipt

    async def end(self) -> Receipt:
        """Until its lifetime is over: who has it by then, and who never will ("expired"). A server that cannot be asked then
        is asked again for a minute; after that it is not known who has it by that server."""
        if self.ending is not None:
            await asyncio.wait((self.ending,))
            if self.ending.cancelled():
                raise Closed("this space was closed before the command's lifetime was over")
            return self.ending.result()
        loop, receipt, silent_from_s = asyncio.get_running_loop(), self, inf
        while receipt.look is not None and loop.time() - silent_from_s < _MOST_SILENT_S:
            began_s, is_known = loop.time(), False
            try:
                receipt = await receipt.refresh()
                is_known = receipt.waits_s > 0
            except UTupleError:
                if loop.time() - silent_from_s >= _MOST_SILENT_S:
                    raise
            silent_from_s = inf if is_known else min(silent_from_s, began_s)
            if receipt.look is not None:
                pause_s = receipt.waits_s + _FIRST_LOOK_S if is_known else _MOST_LOOK_S
                await asyncio.sleep(pause_s)
        return receipt

    @property
    def is_done(self) -> bool:
        """All the devices it met have it, and it met one."""
        return bool(self.devices) and self.handed_over == self.matched

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
        others = [device for device in self.devices if not device.handed_over]
        said += _listed("missed", [str(one) for one in others if one.reason != NOT_KNOWN])
        said += _listed(NOT_KNOWN, [one.address for one in others if one.reason == NOT_KNOWN])
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


def receipt_of(
    command: str,
    handovers: Iterable[pb.Handover],
    waits_s: float = 0.0,
    id_: bytes | None = None,
    look: Look | None = None,
) -> Receipt:
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
                device.handed in (pb.HANDED_OVER, pb.ACKNOWLEDGED),
                _REASONS.get(device.handed, "not confirmed"),
                device.handed == pb.ACKNOWLEDGED,
                device.id,
            )
            for device in devices
        ),
        waits_s,
        None if id_ is None else UUID(bytes=id_),
        look,
    )


def as_known_before(receipt: Receipt, before: Receipt) -> Receipt:
    """Whoever had it has it, and whom it has met it has met, also if the server that knew is not there any more."""
    best = {(one.address, one.formal): one for one in before.devices}
    for one in receipt.devices:
        known = best.get((one.address, one.formal))
        if known is None or _certainty(one) >= _certainty(known):
            best[one.address, one.formal] = one
    devices = tuple(best[key] for key in sorted(best))
    return replace(receipt, devices=devices, ending=before.ending)


def expired(receipt: Receipt) -> Receipt:
    """Its lifetime is over, and this is what servers say that have kept count: nothing changes any more."""
    never = [
        replace(one, reason=EXPIRED) if one.reason == _REASONS[pb.NOT_CONNECTED] else one
        for one in receipt.devices
    ]
    return replace(receipt, devices=tuple(never), waits_s=0.0, look=None)


def not_known(receipt: Receipt) -> Receipt:
    """Its lifetime is over, and nobody says what became of it: what is certain stays."""
    devices = [
        one if _certainty(one) else replace(one, reason=NOT_KNOWN) for one in receipt.devices
    ]
    return replace(receipt, devices=tuple(devices), waits_s=0.0)


def _certainty(one: DeviceReceipt) -> int:
    """What has this may not be taken back by what has less."""
    if one.handed_over:
        return 2 + one.acknowledged
    return int(one.reason == EXPIRED)


def _listed(what: str, names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"; {what}: {', '.join(names[:_SHOWN])}{more}" if names else ""


def _rank(handover: pb.Handover) -> int:
    return _BEST_FIRST.index(handover.handed) if handover.handed in _BEST_FIRST else 1
