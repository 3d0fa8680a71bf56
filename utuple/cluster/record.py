"""A move with its step and its outcome, as its home records it. Pure.

The record is durable at the home from the first step to the last, so that the home goes on with the move after a
crash, and it is kept a while as the event log that monitors, operators and tests read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from utuple.cluster.line import Line
from utuple.cluster.move import Move


class MoveStep(Enum):
    LEARNING = "learning"
    """Recorded; what must be known or held elsewhere is being brought there."""
    COMMITTED = "committed"
    """The new epoch is decided; who must know it is being told."""
    DONE = "done"
    ABORTED = "aborted"
    """Given up before the commit; who took part is being told."""
    OVER = "over"
    """Given up, and everyone who took part knows."""


UNDONE = frozenset({MoveStep.LEARNING, MoveStep.COMMITTED, MoveStep.ABORTED})
"""The home still has something to do."""
MADE = frozenset({MoveStep.COMMITTED, MoveStep.DONE})
"""The new epoch is decided."""


@dataclass(frozen=True, slots=True)
class MoveRecord:
    id: bytes
    move: Move
    before: Line
    step: MoveStep = MoveStep.LEARNING
    after: tuple[Line, ...] = ()
    """From the commit on."""
    began_us: int = 0
    committed_us: int = 0
    """0: not yet."""
    ended_us: int = 0
    """When everyone knew, or when it was given up. 0: not yet."""
    copied: int = 0
    """EFs and CAs taught."""
    rows: int = 0
    """EAs and CFs brought to the heir."""
    held_us: int = 0
    """How long EF and CA registration was held back."""
    cuts: int = 0
    """How often the cut was made."""
    reason: str = ""
    """Why it was given up."""

    @property
    def is_undone(self) -> bool:
        return self.step in UNDONE

    @property
    def is_made(self) -> bool:
        return self.step in MADE

    @property
    def decided_us(self) -> int:
        """When it was committed or given up, and the next move of the section could begin; 0: it stands in the way.
        Who is told afterwards, and when, does not matter to the next one."""
        if self.step is MoveStep.LEARNING:
            return 0
        return self.committed_us or self.ended_us or self.began_us

    @property
    def audience(self) -> frozenset[str]:
        """Who must hear of the new epoch."""
        lines = (self.before, *self.after)
        return frozenset(member.name for line in lines for member in line.members)
