"""Backpressure: a call is refused when its answer would come too late. Pure.

A caller waits until its deadline. What the writer cannot have answered by then is refused while "not registered" is still
certain (law 4): when the call comes, or when its turn comes and the turns before it took longer than expected. Otherwise
the caller would have to be told that the outcome is unknown, and the writer would have worked for nobody.

A retry is the caller's only way to end such a doubt: it is refused only if its own answer would come too late.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf

from utuple.cluster.load import Load
from utuple.errors import Overloaded
from utuple.server.config import ServerConfig
from utuple.server.writing.request import Request

_LEAST_WAIT_S, _MOST_WAIT_S = 0.1, 10.0
"""What a caller is told to wait lies between these, whatever the estimate."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is queued and being written when a call comes."""

    queued_rows: int
    queued_bytes: int
    writing_rows: int
    rate_per_s: float | None
    """Rows the writer manages when it is busy, if that was measured lately."""

    @property
    def rows(self) -> int:
        return self.queued_rows + self.writing_rows

    def accepts(
        self, request: Request, size_bytes: int, within_s: float, config: ServerConfig
    ) -> bool:
        """Can this call be queued as well, and be answered within so long?"""
        rows = request.rows
        full = (
            self.queued_rows + rows > config.max_queued_rows
            or self.queued_bytes + size_bytes > config.max_queued_bytes
        )
        if full and self.queued_rows:
            return False
        if self.rate_per_s is None or not self.queued_rows:
            return True
        is_behind = self.rows > config.max_wait_s * self.rate_per_s and not request.retry
        return not is_behind and self.rows + rows <= within_s * self.rate_per_s

    def refusal(self, load: Load) -> Overloaded:
        """It asks the caller to wait until everything queued by now is done: sooner, it would be refused again."""
        wait_s = (
            load.expected_wait_s(0.0) if self.rate_per_s is None else self.rows / self.rate_per_s
        )
        return Overloaded(
            f"{self.rows} uTuples wait already; nothing was registered",
            retry_after_s=min(max(wait_s, _LEAST_WAIT_S), _MOST_WAIT_S),
        )


class Verdict(Enum):
    JOINS = "joins"
    LATER = "later"
    """With it, a call of this batch would be answered too late: it waits for the next batch."""
    LATE = "late"
    """It would be answered too late even if it came first."""


class Turn:
    """One batch as it is put together, `ahead_rows` behind one that is being written."""

    def __init__(self, now_s: float, rate_per_s: float | None, ahead_rows: int = 0) -> None:
        self._now_s = now_s
        self._each_s = 1 / rate_per_s if rate_per_s else 0.0
        self._ahead_rows = ahead_rows
        self._rows = 0
        self._first_due_s = inf

    def judge(self, rows: int, answer_by_s: float) -> Verdict:
        if self._done_s(rows) > answer_by_s:
            return Verdict.LATE
        due_s = min(answer_by_s, self._first_due_s)
        if self._done_s(self._rows + rows) > due_s:
            return Verdict.LATER
        self._rows += rows
        self._first_due_s = due_s
        return Verdict.JOINS

    def _done_s(self, rows: int) -> float:
        return self._now_s + (self._ahead_rows + rows) * self._each_s
