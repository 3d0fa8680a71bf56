"""A batch of simple commands, and the check of its rows. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from utuple.errors import InvalidInput
from utuple.model.identity import time_of_id_us
from utuple.model.utuple import ID_BYTES, Family, check_time
from utuple.model.value import are_plain_names, check_name, normal_data


@dataclass(frozen=True, slots=True)
class Commands:
    families: tuple[Family, ...]
    family: array[int]
    """Per row, which of `families`."""
    ids: bytes
    addresses: Sequence[str]
    payloads: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.addresses)

    def id_at(self, row: int) -> bytes:
        return self.ids[row * ID_BYTES : (row + 1) * ID_BYTES]

    def take(self, rows: Sequence[int]) -> Commands:
        return Commands(
            self.families,
            array("I", [self.family[row] for row in rows]),
            b"".join([self.id_at(row) for row in rows]),
            [self.addresses[row] for row in rows],
            [self.payloads[row] for row in rows],
        )


_LATE = 0x80
"""First byte of a time some thousand years before the last that there is."""

Wrong = tuple[int, InvalidInput]
"""A row that is refused, and why."""


def admit(commands: Commands) -> tuple[Commands, Sequence[int], list[Wrong]]:
    """The good rows with their data in its one encoding, where they stood, and the refused ones."""
    normal: dict[bytes, bytes] = {}
    if are_plain_names(commands.addresses) and _are_timely(commands.ids):
        with suppress(InvalidInput):  # then one by one
            for payload in set(commands.payloads):
                normal[payload] = _normal(payload)
            payloads = list(map(normal.__getitem__, commands.payloads))
            return replace(commands, payloads=payloads), range(len(commands)), []
    payloads = []
    wrong: list[Wrong] = []
    for row, (address, payload) in enumerate(
        zip(commands.addresses, commands.payloads, strict=True)
    ):
        try:
            check_name("address", address)
            check_time("id", time_of_id_us(commands.id_at(row)))
            known = normal.get(payload)
            if known is None:
                known = normal[payload] = _normal(payload)
            payloads.append(known)
        except InvalidInput as error:
            wrong.append((row, error))
            payloads.append(b"")
    whole = replace(commands, payloads=payloads)
    if not wrong:
        return whole, range(len(commands)), []
    bad = {row for row, _ in wrong}
    good = [row for row in range(len(commands)) if row not in bad]
    return whole.take(good), good, wrong


def _are_timely(ids: bytes) -> bool:
    """All were made before the year 6400, which their first byte says."""
    return max(ids[::ID_BYTES], default=0) < _LATE


def _normal(payload: bytes) -> bytes:
    try:
        return normal_data(payload)
    except RecursionError:  # JSON nested deeper than the decoder's stack
        raise InvalidInput("data", f"{len(payload)} bytes", "is nested too deep") from None
