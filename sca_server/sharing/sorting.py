"""Which commands of a batch may be answered here, and which their sender has to send again. Pure.

"Handed over" is true wherever it is said. "Not connected" and "no such device" may only be said by who knows: of a steady device
when every member of its line was read (decision 24), of one that is new here also not before the list of sCA servers has settled
(`tenure`). Until then its commands are answered as `moving`, and the client sends them again.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from sca_server.commands import Commands
from sca_server.filling.refill import Refill, Refills
from sca_server.index import Index
from sca_server.matcher import match
from sca_server.sharing.tenure import Tenure
from utuple.model.key import key_of
from utuple.model.utuple import Family

OTHERS = "the device belongs to another sCA server"
DISAGREE = "the sCA servers do not agree yet whose the device is"
LATE = "this sCA server stood still, and others may have its devices by now"
COMING = "the device is on its way to another sCA server"


@dataclass(slots=True)
class Sorted:
    here: Sequence[int]
    moving: list[int] = field(default_factory=list)
    reason: str = ""
    """Why those are moving: the last one's."""
    filling: bool = False
    """Because CFs are being read."""

    def send_again(self, row: int, reason: str) -> None:
        self.moving.append(row)
        self.reason = reason


def sort(
    commands: Commands,
    *,
    tenure: Tenure,
    refills: Refills,
    index: Index,
    attached: Container[bytes],
    now_us: int,
    now_s: float,
    late: bool = False,
) -> Sorted:
    """`late`: it stood still, and has not asked the others since."""
    if tenure.has_all and refills.steady.is_complete:
        return Sorted(range(len(commands)))
    if late:
        return Sorted((), list(range(len(commands))), LATE)
    here: list[int] = []
    new: list[int] = []
    found = Sorted(here)
    for row, (number, address) in enumerate(zip(commands.family, commands.addresses, strict=True)):
        family = commands.families[number]
        if not tenure.owns(family, address):
            found.send_again(row, OTHERS)
            continue
        is_steady = tenure.is_steady(family, address)
        if not is_steady and not tenure.has_agreed:
            found.send_again(row, DISAGREE)
        elif waits := _waits_for(refills, family, is_steady):
            found.send_again(row, f"this sCA server is filling, and waits for {waits}")
            found.filling = True
        else:
            (here if is_steady else new).append(row)
    if new:
        absent = set()
        if not tenure.had_time(now_s):
            absent = _absent(commands.take(new), index, attached, now_us)
        for at, row in enumerate(new):
            if at in absent:
                found.send_again(row, COMING)
            else:
                here.append(row)
        here.sort()
    return found


def _waits_for(refills: Refills, family: Family, is_steady: bool) -> str | None:
    """Of a steady device both readings tell all there is: the one before, and the one under way, which is kept up to date."""
    waits = _lacks(refills.reading, family)
    return _lacks(refills.steady, family) if waits and is_steady else waits


def _lacks(refill: Refill, family: Family) -> str | None:
    return None if refill.is_complete else refill.waits_for(key_of(*family))


def _absent(commands: Commands, index: Index, attached: Container[bytes], now_us: int) -> set[int]:
    """Rows with a device that is known and not attached: it may be about to."""
    rows, devices = match(index, commands, now_us)
    return {row for row, device in zip(rows, devices, strict=True) if device.id not in attached}
