"""What everything virtual shares: the loop, dice from the seed, the history, and what is told about it."""

from __future__ import annotations

import hashlib
import traceback
from collections import Counter
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from benchmarks.chaos.checker import History
from tests.virtual.world.loop import VirtualLoop
from utuple.model.utuple import Exact


def dice_of(seed: int, name: str) -> Random:
    """Independent of every other: one more draw here changes nothing there."""
    return Random(f"{seed}/{name}")


class World:
    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.loop = VirtualLoop()
        self.history = History()
        self.counts: Counter[str] = Counter()
        """Faults, moves and what the coverage asks for, by name."""
        self.wrong: list[str] = []
        """Violations no history shows: bugs that raised, programs that ended, calls that never succeed."""
        self.clients: list[Any] = []
        self._numbers = count(1)
        self._over = False
        self._tell = tell
        self._digest = hashlib.blake2b(digest_size=8)
        self.loop.set_exception_handler(self._surprised)

    def dice(self, name: str) -> Random:
        return dice_of(self.seed, name)

    def next_number(self) -> int:
        """For an event or a command, all over the world."""
        return next(self._numbers)

    @property
    def now_s(self) -> float:
        return self.loop.now_s

    @property
    def now_us(self) -> int:
        """True time."""
        return self.loop.true_us

    def sent_from(self, address: str) -> set[bytes]:
        """The events of this address, by id."""
        sent = (one.utuple for one in self.history.sent.values())
        return {
            u.id for u in sent if isinstance(u.metadata, Exact) and u.metadata.address == address
        }

    def end(self) -> None:
        """What is heard from now on are the last words of what is thrown away."""
        self._over = True

    def trace(self, *said: object) -> None:
        if self._over:
            return
        line = f"{self.loop.now_s:9.4f} " + " ".join(map(str, said))
        self._digest.update(line.encode())
        if self._tell is not None:
            self._tell(line)

    def count(self, name: str) -> None:
        self.counts[name] += 1

    def bug(self, said: str, error: BaseException | None = None) -> None:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if error is not None:
            said += f": {type(error).__name__}: {error}"
            if self._tell is not None and not self._over:
                self._tell("".join(traceback.format_exception(error)))
        if self._over:
            return
        self.trace("BUG", said)
        self.wrong.append(f"{self.loop.now_s:.3f} s: {said}")

    @property
    def digest(self) -> str:
        """The same in every run of the same seed."""
        return self._digest.hexdigest()

    def _surprised(self, _: object, told: dict[str, object]) -> None:
        error = told.get("exception")
        self.bug(str(told.get("message")), error if isinstance(error, BaseException) else None)
