"""What to do after an attempt that did not end well. Pure: the time and the dice are arguments.

    BEHIND       routed by another epoch than the server's: nothing was registered. With a newer line at
                 hand send at once by that; else ask for the line, and try another member.
    FULL         the server is overloaded: nothing was registered. Wait as long as it asks.
    UNREACHABLE  never sent: nothing was registered. Another member, or the same after a wait.
    LOST         sent, no answer: it may be registered. Only the same member can tell, so it is asked
                 again, saying that this is a retry; when it stays silent, another member.

Once an answer was lost, every later attempt says that it is a retry, and the end is never "not
registered".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

_IMMEDIATE = 3
"""Newer lines followed at once in a row; a cluster that changes faster is given time."""

_DOUBLINGS = 16


class Fate(Enum):
    BEHIND = "behind"
    FULL = "full"
    UNREACHABLE = "unreachable"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Policy:
    first_wait_s: float
    most_wait_s: float
    same_member_s: float


@dataclass(frozen=True, slots=True)
class Tries:
    """What is known about the attempts so far."""

    deadline_s: float
    failed: int = 0
    retry: bool = False
    """An answer was lost: this may be registered."""
    member: str | None = None
    """Go there, because it may have it; None: choose."""
    lost_since_s: float = 0.0
    avoid: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Again:
    tries: Tries
    wait_s: float
    refresh: bool
    """Ask an assignment manager first: the line or an address may have changed."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    unknown: bool
    """True: may be registered; False: is not."""


def after(
    tries: Tries,
    fate: Fate,
    member: str,
    *,
    now_s: float,
    dice: float,
    policy: Policy,
    newer_line: bool = False,
    others: bool = False,
    retry_after_s: float = 0.0,
) -> Again | GiveUp:
    """`others`: there are members not yet tried. `dice` in [0, 1) spreads clients that fail together."""
    wait_s = backoff_s(tries.failed, dice, policy)
    step = replace(tries, failed=tries.failed + 1)
    refresh = True
    if fate is Fate.BEHIND:
        step = replace(step, avoid=frozenset() if newer_line else tries.avoid | {member})
        refresh = not newer_line
        if newer_line and tries.failed < _IMMEDIATE:
            wait_s = 0.0
    elif fate is Fate.FULL:
        wait_s = max(wait_s, retry_after_s * (1 + dice / 2))
        refresh = False
    elif fate is Fate.LOST or tries.member == member:
        step = _held(step, member, now_s, policy)
    else:
        step = replace(step, avoid=tries.avoid | {member})
        wait_s = 0.0 if others else wait_s
    if now_s + wait_s >= tries.deadline_s:
        return GiveUp(step.retry)
    return Again(step, wait_s, refresh)


def _held(step: Tries, member: str, now_s: float, policy: Policy) -> Tries:
    """The member that may have it keeps it, until it has been silent for too long."""
    if step.member != member:
        return replace(step, retry=True, member=member, lost_since_s=now_s)
    if now_s - step.lost_since_s < policy.same_member_s:
        return replace(step, retry=True)
    return replace(step, retry=True, member=None, avoid=step.avoid | {member})


def backoff_s(failed: int, dice: float, policy: Policy) -> float:
    """Doubles with every failure; between half of it and all of it."""
    whole = min(policy.most_wait_s, policy.first_wait_s * (1 << min(failed, _DOUBLINGS)))
    return whole * (0.5 + dice / 2)
