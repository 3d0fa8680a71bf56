"""What a learner was taught, and what changes at the home meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from utuple.model.section import Section


@dataclass(slots=True)
class TaughtIds:
    """The ids of the EFs and CAs one attempt has taught. Home and learner each keep this count and digest, and compare
    them: so the home knows that nothing was lost on the way."""

    attempt: int = 0
    portions: int = 0
    ids: set[bytes] = field(default_factory=set)
    _xor: int = 0

    def add_all(self, ids: Iterable[bytes]) -> None:
        new = set(ids) - self.ids
        self.ids |= new
        halves = np.frombuffer(b"".join(new), ">u8").reshape(-1, 2)
        self._xor ^= int.from_bytes(np.bitwise_xor.reduce(halves, axis=0).tobytes(), "big")

    def remove(self, id_: bytes) -> None:
        if id_ in self.ids:
            self.ids.discard(id_)
            self._xor ^= int.from_bytes(id_, "big")

    @property
    def digest(self) -> bytes:
        return self._xor.to_bytes(16, "big")

    @property
    def summary(self) -> tuple[int, bytes]:
        """Count and digest."""
        return len(self.ids), self.digest


@dataclass(slots=True)
class ChangeLog:
    """The EFs and CAs that came or were cancelled in a section since its teaching began. Its length is the cut: the
    commit is refused if anything was added after what the learner has."""

    section: Section
    length: int = 0
    unsent: dict[bytes, bool] = field(default_factory=dict)
    """By id: whether it is there now."""

    def note(self, id_: bytes, *, present: bool) -> None:
        self.length += 1
        self.unsent[id_] = present

    def take_unsent(self) -> tuple[dict[bytes, bool], int]:
        """What was noted since the last call, and the cut it makes."""
        unsent, self.unsent = self.unsent, {}
        return unsent, self.length
