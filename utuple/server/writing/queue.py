"""What waits for the writer: calls with their answers, those a move holds back, and a batch prepared ahead."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from utuple.errors import Overloaded
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.server.writing.backpressure import Turn, Verdict
from utuple.server.writing.request import Answer, Request
from utuple.server.writing.writer import Prepared


@dataclass(slots=True)
class Waiting:
    request: Request
    size_bytes: int
    answer: asyncio.Future[Answer]
    answer_by_s: float = inf
    """Later nobody waits for it."""


class Queue:
    """Calls in the order they came, counted."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self.rows = 0
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting)

    def put(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        self._count(waiting, 1)

    def put_back(self, batch: Sequence[Waiting]) -> None:
        """Before all others."""
        for waiting in reversed(batch):
            self._waiting.appendleft(waiting)
            self._count(waiting, 1)

    def take(self) -> Waiting:
        waiting = self._waiting.popleft()
        self._count(waiting, -1)
        return waiting

    def take_for(self, turn: Turn, refusal: Callable[[], Overloaded]) -> Waiting | None:
        """The next that joins this turn. What would be answered too late is refused on the way."""
        while self._waiting:
            waiting = self._waiting[0]
            if not waiting.answer.done():  # else the caller went away before its turn
                verdict = turn.judge(waiting.request.rows, waiting.answer_by_s)
                if verdict is Verdict.JOINS:
                    return self.take()
                if verdict is Verdict.LATER:
                    return None
                waiting.answer.set_exception(refusal())
            self.take()
        return None

    def take_plain(self, most_rows: int, turn: Turn) -> list[Waiting]:
        """The first ones, as long as they are EAs for the first time that are answered in time."""
        batch: list[Waiting] = []
        rows = 0
        while self._waiting and rows < most_rows and self._waiting[0].request.is_plain:
            first = self._waiting[0]
            if turn.judge(first.request.rows, first.answer_by_s) is not Verdict.JOINS:
                break
            waiting = self.take()
            if not waiting.answer.done():  # else the caller went away before its turn
                batch.append(waiting)
                rows += waiting.request.rows
        return batch

    def _count(self, waiting: Waiting, sign: int) -> None:
        self.rows += sign * waiting.request.rows
        self.size_bytes += sign * waiting.size_bytes


@dataclass(slots=True, eq=False)
class Hold:
    """EF and CA registrations of a section wait while it lasts; EAs and CFs go on."""

    section: Section
    waiting: list[Waiting] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None

    def keeps_back(self, request: Request) -> bool:
        families = [utuple.family for _, utuple in request.templates]
        families += [family for _, _, family in request.cancels]
        return any(key_of(*family) in self.section for family in families)


@dataclass(slots=True)
class Ahead:
    """The next batch, prepared while the one before it is being committed. Should that fail, nothing of this one
    has happened yet: it waits again, and is prepared by the new core."""

    batch: list[Waiting]
    prepared: asyncio.Future[Prepared]
