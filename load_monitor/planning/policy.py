"""When load moves, and how often at most: every threshold, wait and limit of the planner. Pure.

Loads are shares: 1.0 is a writer that is always busy, or a store that is full. Thresholds come in pairs,
one to start and a lower one to stop, because a single one would be crossed by noise again and again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from utuple.errors import InvalidInput

HALF, KEY = "half", "key"
Knob = float | str

_SHARES = (
    *("processing_start", "processing_stop", "processing_low", "helper_processing_max"),
    *("memory_start", "memory_stop", "helper_memory_max"),
)
_BELOW = (
    ("processing_stop", "processing_start"),
    ("processing_low", "processing_stop"),
    ("helper_processing_max", "processing_stop"),
    ("memory_stop", "memory_start"),
    ("helper_memory_max", "memory_stop"),
)


def check_share(name: str, value: Knob) -> None:
    if not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidInput(name, value, "must be above 0 and at most 1: it is a share of a load")


@dataclass(frozen=True, slots=True)
class Policy:
    # ------------------------------------------------------------------------------ thresholds, shares
    processing_start: float = 0.8
    """T_p of section 3.4. Beyond it waits grow steeply: a queue at 0.8 is four times as long as at 0.5."""
    processing_stop: float = 0.65
    """Help for processing goes on until the server is below this: what one helper takes from 0.8."""
    processing_low: float = 0.45
    """A helper goes off when the others stay below this without it. Far below T_p, so that it is not
    called back at once."""
    memory_start: float = 0.8
    """T_m of section 3.5. What is stored stays until it expires: there must be room for what still
    comes while the move is made and in sections not yet moved."""
    memory_stop: float = 0.7
    """Help for memory goes on until the store is below this."""
    helper_processing_max: float = 0.5
    """Nobody helps above this: a helper near the threshold would need help next."""
    helper_memory_max: float = 0.6
    """The same for memory."""
    worthwhile: float = 0.05
    """Busy share below which a flag flip (A.1) does not relieve a server enough to be worth an epoch."""

    # ---------------------------------------------------------------------------------- smoothing, seconds
    smoothing_s: float = 10.0
    """Time constant of the moving averages: a few polls, so that one slow commit moves nothing."""
    hold_s: float = 10.0
    """Above the threshold for so long before anything moves: a burst passes by itself."""
    calm_s: float = 60.0
    """Time constant by which a load that fell still counts where lines shrink: a pause is no end."""
    wait_at_full_s: float = 1.0
    """A queue this long to wait in counts as load 1.0, a longer one as more: the busy share alone cannot
    say by how much a saturated server is behind."""
    silent_s: float = 15.0
    """Not heard of for so long: silent. EFs and CAs wait for a silent member until it is suspended; a
    server that merely restarts should be back before."""
    trend_s: float = 3_600.0
    """How far back demand is looked at to say where it goes."""

    # -------------------------------------------------------------------------------------- waits, seconds
    settle_s: float = 30.0
    """After a move the servers it touched are looked at again only now (A.2): three time constants, so
    that the averages show what it did."""
    stay_on_s: float = 300.0
    """A member that came on is not sent off for processing load before. Long, because growing again costs
    more than a helper too many."""
    stay_off_s: float = 60.0
    """A member that went off, or was suspended, does not come back before. Short, because load that
    returns hurts at once."""

    # ---------------------------------------------------------------------------------------------- limits
    limit_window_s: float = 3_600.0
    """The stretch of time the next two limits count in."""
    moves_per_section: int = 40
    """In the window, all kinds but suspension, which EFs and CAs wait for. Lets a section grow to 40
    members in an hour; what changes faster is not worth following."""
    moves_per_server: int = 120
    """In the window, as the one that is helped or that helps: a move every settle_s."""
    moves_at_once: int = 8
    """Under way or not yet settled, in a small cluster: moves cost the loads they are to relieve."""
    moves_share: float = 0.05
    """The same in a large cluster, as a share of its servers."""
    drain_at_once: int = 4
    """Moves under way away from one draining server: it must go on serving what it still has."""
    split_members_max: int = 4
    """A line with more members is not split for a new server: both halves would keep all of them, and all
    copies of their EFs and CAs. One hot key makes such lines, and no split relieves it."""
    split_at: str = KEY
    """Where a section is divided for a new server: `half`, in its middle, as the paper does (section 3.6), or `key`, at
    the key of a random stored uTuple, which lies where the load is (decision 47)."""
    members_max: int = 256
    """Of a line: every EF and CA goes to each. The assignment manager refuses more than 1000."""

    # ---------------------------------------------------------------------------------------------- advice
    lead_s: float = 4 * 3_600.0
    """How far ahead demand is extrapolated, but no further than it was looked back: the time an operator
    needs to add a server. A straight line says nothing about tomorrow; that is what the operational
    simulation is for."""

    def __post_init__(self) -> None:
        for field in _SHARES:
            check_share(field, getattr(self, field))
        for lower, upper in _BELOW:
            low, high = getattr(self, lower), getattr(self, upper)
            if not low < high:
                raise InvalidInput(lower, low, f"must be below {upper}, which is {high:g}")
        for field in (
            "smoothing_s",
            "calm_s",
            "wait_at_full_s",
            "silent_s",
            "trend_s",
            "limit_window_s",
        ):
            if not 0 < getattr(self, field) < math.inf:
                raise InvalidInput(
                    field, getattr(self, field), "must be above 0 seconds, and finite"
                )
        for field in ("hold_s", "settle_s", "stay_on_s", "stay_off_s", "lead_s"):
            if not 0 <= getattr(self, field) < math.inf:
                raise InvalidInput(
                    field, getattr(self, field), "must be at least 0 seconds, and finite"
                )
        for field in ("moves_per_section", "moves_per_server", "moves_at_once", "drain_at_once"):
            if getattr(self, field) < 1:
                raise InvalidInput(field, getattr(self, field), "must be at least 1")
        if max(self.settle_s, self.stay_on_s, self.stay_off_s) > self.limit_window_s:
            raise InvalidInput(
                "limit_window_s", self.limit_window_s, "must not be shorter than the waits"
            )
        for field in ("moves_share", "worthwhile"):
            if not 0 <= getattr(self, field) <= 1:
                raise InvalidInput(field, getattr(self, field), "must be a share, from 0 to 1")
        if self.split_members_max < 1:
            raise InvalidInput("split_members_max", self.split_members_max, "must be at least 1")
        if self.split_at not in (HALF, KEY):
            raise InvalidInput("split_at", self.split_at, f"must be {HALF} or {KEY}")
        if self.members_max < 2:
            raise InvalidInput("members_max", self.members_max, "must leave room for a helper")

    def at_once(self, servers: int) -> int:
        """How many moves a cluster of that size makes at the same time."""
        return max(self.moves_at_once, int(self.moves_share * servers))


LIVE = Policy(
    processing_start=0.7,
    processing_stop=0.55,
    processing_low=0.4,
    helper_processing_max=0.45,
    smoothing_s=2.0,
    hold_s=1.0,
    calm_s=20.0,
    settle_s=10.0,
    stay_on_s=60.0,
    stay_off_s=20.0,
)
"""What a running monitor starts from: it looks once a second, and a server's busy share is already an average
over five, so that a hot key has its helper within ten seconds and gives it back within minutes of calm. T_p
is lower than above because clients wait for their answers: a few of them do not get a writer, which is idle
while they hear from it, much beyond 0.8. The defaults above are for plans over hours, as the operational
simulation makes them."""


def adjusted(policy: Policy, given: Mapping[str, Knob]) -> Policy:
    """With these knobs changed. Thresholds that belong to T_p or T_m and are not given keep their share of
    it, so that one number is enough to be bolder or more careful."""
    known = {field.name: field.type for field in fields(Policy)}
    for name, value in given.items():
        if knob_of(name) in _SHARES:  # by the name that was given, before others follow it
            check_share(name, value)
    given = {knob_of(name): value for name, value in given.items()}
    knobs: dict[str, Knob] = dict(given)
    for first, others in _FOLLOWERS.items():
        if first in given:
            share = float(given[first]) / getattr(policy, first)
            for other in others:
                knobs.setdefault(other, getattr(policy, other) * share)
    for name, value in knobs.items():
        if known[name] == "int":
            if not float(value).is_integer():
                raise InvalidInput(name, value, "must be a whole number")
            knobs[name] = int(value)
    return replace(policy, **knobs)  # type: ignore[arg-type]


def knobs_from(texts: Iterable[str]) -> dict[str, Knob]:
    """Knobs as a person writes them on a command line, NAME=NUMBER each, and split_at=half or key; by the names they were
    given."""
    found: dict[str, Knob] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        knob = knob_of(name) if equals else ""
        if knob in WORDS:
            found[name] = value.lower()
            continue
        try:
            found[name] = float(value)
        except ValueError:
            rule = "must be NAME=NUMBER, such as stay_on_s=30, or split_at=half or key"
            raise InvalidInput("--policy", text, rule) from None
    return found


WORDS = frozenset({"split_at"})
"""Knobs that are no numbers."""


PAPER_NAMES = {"t_p": "processing_start", "t_m": "memory_start"}
"""The paper's own, as T_p or t-p too."""


def knob_of(name: str) -> str:
    """By whichever name it is known."""
    plain = name.strip().replace("-", "_").lower()
    knob = PAPER_NAMES.get(plain, plain)
    known = [field.name for field in fields(Policy)]
    if knob not in known:
        papers = (f"{paper.capitalize()} ({long})" for paper, long in PAPER_NAMES.items())
        raise InvalidInput("policy", name, f"must be one of {', '.join([*papers, *known])}")
    return knob


_FOLLOWERS = {
    "processing_start": ("processing_stop", "processing_low", "helper_processing_max"),
    "memory_start": ("memory_stop", "helper_memory_max"),
}
