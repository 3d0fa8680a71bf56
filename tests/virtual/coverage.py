"""What many seeds together must have met: every call between servers with either side dying before and after
its delivery, and every kind of move completed, given up, and struck on either side in either step."""

from __future__ import annotations

from collections.abc import Mapping

from utuple.cluster.move import MoveKind
from utuple.cluster.record import MoveStep

PHASES = ("before", "after")
"""A call arrives; or it was handled, and its answer has not left."""
SIDES = ("caller", "callee")
OF_MOVES = ("home", "other")
STEPS = (MoveStep.LEARNING, MoveStep.COMMITTED)
BETWEEN_SERVERS = ("learn", "ready", "hear", "forget", "vacant", "older", "ship", "take")
KINDS = tuple(sorted(MoveKind, key=lambda kind: kind.value))

_TEACHES = ("learn", "ready", "hear", "forget", "forget")
CALLS: Mapping[MoveKind, tuple[str, ...]] = {
    MoveKind.HELP_PROCESSING: _TEACHES,
    MoveKind.HELP_MEMORY: _TEACHES,
    MoveKind.SPLIT: _TEACHES,
    MoveKind.FLIP_ON: _TEACHES,
    MoveKind.RETURN: _TEACHES,
    MoveKind.FLIP_OFF: ("hear",),
    MoveKind.SUSPEND: ("hear",),
    MoveKind.MERGE: ("hear",),
    MoveKind.PARTITION: ("hear",),
    MoveKind.RECUT: _TEACHES,
    MoveKind.GATHER: ("hear",),
    MoveKind.PRUNE: ("hear", "older", "older"),
    MoveKind.RELEASE: ("hear", "vacant", "vacant", "vacant", "vacant", "ready"),
    MoveKind.DRAIN: ("hear", "ship", "ship", "ship", "take", "take", "take", "ready", "forget"),
}
"""What a move of each kind asks of the others."""

ABORTABLE = frozenset(MoveKind) - {
    *(MoveKind.FLIP_OFF, MoveKind.SUSPEND, MoveKind.MERGE),
    *(MoveKind.PARTITION, MoveKind.GATHER, MoveKind.PRUNE),
}
"""The others go straight to the commit: there is nothing they could wait for in vain."""
_BY_HAND = frozenset({MoveKind.PARTITION, MoveKind.RECUT, MoveKind.PRUNE})
"""No planner orders them: the first two yet, the third because the home itself does."""


def struck(side: str, phase: str, method: str) -> str:
    return f"crash of {side} {phase} {method}"


def in_step(side: str, kind: MoveKind, step: MoveStep) -> str:
    return f"crash of {side} in {kind.value} {step.value}"


def ended(kind: MoveKind, *, completed: bool) -> str:
    return f"move {kind.value} {'completed' if completed else 'aborted'}"


def planned(kind: MoveKind) -> str:
    return f"planned {kind.value}"


NEIGHBOURS = "two moves of neighbouring sections at once"
MANY_MEMBERS = "move of a line with four or more members"
CANCELLED = "EF cancelled in a move of its section"
CAME_BACK = "reader came back after a move of its section"
OPENED_TWICE = "reader opened where another was"
OPENING_CANCELLED = "opening cancelled"
CANCELLED_ELSEWHERE = "EF of a connected reader cancelled by another"
MERGED_EPOCHS = "merge of lines of different epochs"
MERGED_MEMBERS = "merge of lines with several members"
PARKED = "a delivery was parked"
PARKED_DRAINED = "what was parked went with a drain"
DROPPED = "something was dropped and declared"
DRAINED_WHILE_AWAY = "a drain around the return of a reader with a drop policy"
FLEETING_COMMAND = "command of lifetime 0 handed over in an area"
FLEETING_EVENT = "events of lifetime 0, and all servers killed right after"
ELASTIC = (
    *("server added by elasticity", "server removed by elasticity"),
    *("machine made", "machine given back"),
)
GUEST_REFUSED = "a registration was refused for want of a grant"
GUEST_SILENCED = "a watch ended for want of a grant"
OLD_GRANTS = "grants with an old number came"
THROUGH_A_DOOR = "a call was made through a door"
FORGED = "a stolen door spoke for another"
ANOTHERS = "what is another's was to be cancelled"
IN_ORDER = "events one by one, taken by several members"
SEARCHED_TOGETHER = "one search of the store for several EFs of a stream"
SHARED_OUT = "commands while sCA servers change"
WAITED = "commands waited for a device that was away"
OFF_WHILE_AWAY = "the member of a device that was away goes off"
PARTITIONED = "events of a line that was partitioned and gathered"
RECUT = "a partitioned line that was cut anew while a reader was away"
PRUNED = "EFs of a partitioned line that left members out"
BUSY = "a program is busy while its devices move to another sCA server"


def shared_out_by(kind: str) -> str:
    return f"an sCA server {kind} while commands flow"


HARDEST = (
    *(GUEST_REFUSED, GUEST_SILENCED, OLD_GRANTS, THROUGH_A_DOOR, FORGED, ANOTHERS),
    *(NEIGHBOURS, MANY_MEMBERS, MERGED_EPOCHS, MERGED_MEMBERS, CANCELLED, CAME_BACK),
    *(OPENED_TWICE, OPENING_CANCELLED, FLEETING_COMMAND, FLEETING_EVENT, DROPPED),
    CANCELLED_ELSEWHERE,
    *(
        IN_ORDER,
        SHARED_OUT,
        WAITED,
        OFF_WHILE_AWAY,
        BUSY,
        *map(shared_out_by, ("joins", "leaves", "dies", "restarts")),
    ),
    *ELASTIC,
    *(PARTITIONED, RECUT, PRUNED, PARKED, PARKED_DRAINED, SEARCHED_TOGETHER, DRAINED_WHILE_AWAY),
)
"""What no explicit-state check has covered (docs/moving.md)."""


def calls_wanted() -> list[list[str]]:
    """One row for each call."""
    return [[struck(side, phase, m) for side in SIDES for phase in PHASES] for m in BETWEEN_SERVERS]


def steps_wanted() -> list[list[str]]:
    """One row for each kind of move."""
    return [[in_step(side, k, step) for side in OF_MOVES for step in STEPS] for k in KINDS]


def ends_wanted() -> list[list[str]]:
    return [
        [
            ended(kind, completed=True),
            *([ended(kind, completed=False)] if kind in ABORTABLE else []),
            *([planned(kind)] if kind not in _BY_HAND else []),
        ]
        for kind in KINDS
    ]


def wanted() -> list[str]:
    rows = [*calls_wanted(), *steps_wanted(), *ends_wanted()]
    return [*(name for row in rows for name in row), *HARDEST]
