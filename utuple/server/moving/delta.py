"""What is taught to a learner, and what changes meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from utuple.model.section import Section


@dataclass(slots=True)
class Taught:
    """Ids taught, counted and summed alike by teacher and learner."""

    attempt: int = 0
    portions: int = 0
    ids: set[bytes] = field(default_factory=set)
    _sum: int = 0

    def add_all(self, ids: Iterable[bytes]) -> None:
        new = set(ids) - self.ids
        self.ids |= new
        halves = np.frombuffer(b"".join(new), ">u8").reshape(-1, 2)
        self._sum ^= int.from_bytes(np.bitwise_xor.reduce(halves, axis=0).tobytes(), "big")

    def remove(self, id_: bytes) -> None:
        if id_ in self.ids:
            self.ids.discard(id_)
            self._sum ^= int.from_bytes(id_, "big")

    @property
    def digest(self) -> bytes:
        return self._sum.to_bytes(16, "big")


@dataclass(slots=True)
class Trail:
    """What came or was cancelled in a section while its EFs and CAs are being taught."""

    section: Section
    count: int = 0
    pending: dict[bytes, bool] = field(default_factory=dict)
    """Id -> whether it is there now."""
