"""What everything virtual shares: the loop, dice from the seed, the history, and what is told about it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from random import Random

from tests.virtual.loop import VirtualLoop
from utuple.cli.chaos.checker import History


class World:
    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.loop = VirtualLoop()
        self.history = History()
        self.counts: Counter[str] = Counter()
        """Faults, moves and what the coverage asks for, by name."""
        self.wrong: list[str] = []
        """Violations no history shows: bugs that raised, programs that ended, calls that never succeed."""
        self._tell = tell
        self._digest = hashlib.blake2b(digest_size=8)
        self.loop.set_exception_handler(self._surprised)

    def dice(self, name: str) -> Random:
        """Independent of every other: one more draw here changes nothing there."""
        return Random(f"{self.seed}/{name}")

    @property
    def now_s(self) -> float:
        return self.loop.now_s

    @property
    def now_us(self) -> int:
        """True time."""
        return self.loop.true_us

    def trace(self, *said: object) -> None:
        line = f"{self.loop.now_s:9.4f} " + " ".join(map(str, said))
        self._digest.update(line.encode())
        if self._tell is not None:
            self._tell(line)

    def count(self, name: str) -> None:
        self.counts[name] += 1

    def bug(self, said: str) -> None:
        self.trace("BUG", said)
        self.wrong.append(f"{self.loop.now_s:.3f} s: {said}")

    @property
    def digest(self) -> str:
        """The same in every run of the same seed."""
        return self._digest.hexdigest()

    def _surprised(self, _: object, told: dict[str, object]) -> None:
        error = told.get("exception")
        self.bug(f"{told.get('message')}: {type(error).__name__}: {error}")
