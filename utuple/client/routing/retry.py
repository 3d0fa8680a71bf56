"""What to do after an attempt that did not end well. Pure: the time and the dice are arguments.

    BEHIND       routed by another epoch than the server's: nothing was registered. With a newer line at
                 hand send at once by that; else another member at once, and when all have refused wait a
                 little: those who have not heard of the epoch yet hear of it within milliseconds.
    FULL         the server is overloaded: nothing was registered. Another member, or wait as it asks, if the
                 answer may still come in time then: else the end would be an unknown outcome.
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

_PATIENT = 20
"""Waits for members that are behind before the waits begin to double."""

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
    followed: int = 0
    """Newer lines followed at once."""
    waited: int = 0
    retry: bool = False
    """An answer was lost: this may be registered."""
    member: str | None = None
    """Go there, because it may have it; None: choose."""
    lost_since_s: float = 0.0
    avoid: frozenset[str] = frozenset()
    """Members that have failed since the last wait, and the one before it."""


@dataclass(frozen=True, slots=True)
class Again:
    tries: Tries
    wait_s: float
    refresh: bool
    """Ask an assignment manager: the line or an address may have changed."""


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
    step = replace(tries, failed=tries.failed + 1)
    wait_s = _wait_s(tries, fate, dice, policy, retry_after_s)
    is_held = fate is Fate.LOST or tries.member == member
    if fate is Fate.BEHIND and newer_line:
        step = replace(step, avoid=frozenset(), followed=tries.followed + 1)
        wait_s = 0.0 if tries.followed < _IMMEDIATE else wait_s
    elif is_held and fate is not Fate.FULL:
        step = _held(step, member, now_s, policy)
    elif others and not is_held:
        step = replace(step, avoid=tries.avoid | {member})
        wait_s = 0.0
    else:
        step = replace(step, avoid=frozenset({member}))
    if wait_s > 0:
        step = replace(step, waited=tries.waited + 1)
    answer_s = 2 * retry_after_s if fate is Fate.FULL else 0.0  # others come back then too
    if now_s + wait_s + answer_s >= tries.deadline_s:
        return GiveUp(step.retry)
    return Again(step, wait_s, refresh=fate is not Fate.FULL and not newer_line)


def _wait_s(tries: Tries, fate: Fate, dice: float, policy: Policy, retry_after_s: float) -> float:
    if fate is Fate.BEHIND:
        return backoff_s(max(0, tries.waited - _PATIENT), dice, policy)
    wait_s = backoff_s(tries.waited, dice, policy)
    return max(wait_s, retry_after_s * (1 + dice / 2)) if fate is Fate.FULL else wait_s


def _held(step: Tries, member: str, now_s: float, policy: Policy) -> Tries:
    """The member that may have it keeps it, until it has been silent for too long."""
    if step.member != member:
        return replace(step, retry=True, member=member, lost_since_s=now_s)
    if now_s - step.lost_since_s < policy.same_member_s:
        return replace(step, retry=True)
    return replace(step, retry=True, member=None, avoid=step.avoid | {member})


def backoff_s(waited: int, dice: float, policy: Policy) -> float:
    """Doubles with every wait; between half of it and all of it."""
    whole = min(policy.most_wait_s, policy.first_wait_s * (1 << min(waited, _DOUBLINGS)))
    return whole * (0.5 + dice / 2)
