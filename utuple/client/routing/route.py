"""Where a uTuple goes (docs/laws.md has the table and why). Pure.

EA       one accumulatable member; of a partitioned line one that owns a segment its value lies in
CF       one accumulatable member, and the sCA server it belongs to (utuple/cluster/shares.py)
EF       every serving member; kept by those that are on and by the home, the others only look what they
         have stored (lifetime 0). Of a partitioned line it is kept by the home and by who owns a segment that it overlaps;
         it visits of the others only who may hold EAs of earlier layouts
CA       every serving member, and each keeps it: one that is off has CFs whose devices may be away
sCA      (CA to one address, no other metadata condition, lifetime 0) the sCA server its device belongs to, only

The home keeps EFs off or on, because it teaches them to the next helper (decision 28).

Which of several members an EA goes to: each policy is a cost, and the cheapest member is taken.

    adaptive             the shortest expected wait (BlueDove III-B.2), the policy in use; single events keep their
                         order: slots.py
    unordered            the same, for single events too: those of one address may overtake each other
    random               any: what the others are measured against
    least-subscriptions  the fewest EFs (III-B.1)
    response-time        the shortest answer time, averaged, without extrapolation (section IV)

The adaptive policy: each answer of a server carries its queue and its rates; between answers the queue is
extrapolated. What this client has sent since is added, because no answer has counted it yet. And a server
that owes an answer has shown its wait to be at least that long, whatever it said before.

It is the wait until an event is worked on, and not until a whole batch is done: so a slow member that is idle
gets the next batch, and each works all the time, at its own speed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from utuple.cluster.line import Line
from utuple.cluster.load import Load
from utuple.model.condition import Equal
from utuple.model.utuple import Kind, Template, UTuple


@dataclass(frozen=True, slots=True)
class Target:
    """A member that an EF or CA must reach, and whether it keeps it."""

    member: str
    keeps: bool


def untried(names: tuple[str, ...], avoid: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Of the members an EA or CF may go to: those not avoided, or all when every one is."""
    if not avoid:
        return names
    return tuple(name for name in names if name not in avoid) or names


def targets(line: Line, half: UTuple) -> tuple[Target, ...]:
    """The members this EF or CA must reach, all of them (R2)."""
    assert half.kind in (Kind.EF, Kind.CA)
    if half.kind is Kind.CA:
        return tuple(Target(one.name, keeps=True) for one in line.serving)
    keepers = line.keepers(half)
    if not line.layout.axes:
        return tuple(Target(one.name, one.name in keepers) for one in line.serving)
    visited = keepers | line.older_holders(half)  # as `Line.visited` says, but looked for once
    return tuple(
        Target(one.name, one.name in keepers) for one in line.serving if one.name in visited
    )


def lifetime_at(target: Target, lifetime_s: float) -> float:
    return lifetime_s if target.keeps else 0.0


def is_simple(command: UTuple) -> bool:
    """A CA the sCA server matches: one address, no other metadata condition, lifetime 0."""
    metadata = command.metadata
    return (
        command.kind is Kind.CA
        and isinstance(metadata, Template)
        and isinstance(metadata.address, Equal)
        and metadata.since_us is None
        and metadata.until_us is None
        and metadata.area is None
        and command.lifetime_s == 0
    )


def device_member(device: UTuple, line: Line, avoid: frozenset[str] = frozenset()) -> str:
    """Where a CF is kept: by its id, so that a named one comes back to the same member."""
    return rendezvous(device.id, untried(line.accumulatable, avoid))


def rendezvous(what: bytes, names: Sequence[str]) -> str:
    """The name with the highest hash together with `what`: when a name comes or goes, only what it
    wins or held moves."""
    return max(names, key=lambda name: (_score(what, name), name))


def _score(what: bytes, name: str) -> bytes:
    return hashlib.blake2b(what + name.encode(), digest_size=8).digest()


# --- the best of several ---------------------------------------------------------------------------

_WEIGHT = 0.2
"""Of the newest answer in the averaged answer time: the last ten or so count."""

_FORGOTTEN_S = 5.0
"""A member that has not answered for so long is tried again: it may be fast by now."""

_FIRST = float("-inf")
"""Nothing is known of it and nothing is on its way to it: it is tried, or it would stay unknown."""

_LAST = float("inf")
"""It is being tried: its answer will tell."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one server, and what is on its way to it."""

    load: Load | None = None
    at_s: float = 0.0
    """When it said so: its last answer."""
    counted: int = 0
    """Rows of ours that had left and were not answered then: its queue has them."""
    answer_s: float = 0.0
    """How long its calls take, averaged."""
    in_flight: int = 0
    """Rows of ours that wait for it or are on their way."""
    owed_since_s: float | None = None
    """When the oldest call left that it has not answered."""


UNKNOWN = Standing()


@dataclass(frozen=True, slots=True)
class Question:
    """What a member is chosen for."""

    now_s: float
    usual_per_s: float
    """How fast the members that are known work, on average."""


Cost = Callable[[Standing, Question], float]


def _wait_s(one: Standing, question: Question) -> float:
    load = one.load
    if load is None or load.service_per_s <= 0:
        if not one.in_flight:
            return _FIRST
        wait_s = (one.in_flight + 1) / question.usual_per_s
    else:
        uncounted = max(0, one.in_flight - one.counted)
        elapsed_s = max(0.0, question.now_s - one.at_s)
        wait_s = load.expected_wait_s(elapsed_s, uncounted)
    return max(wait_s, _owed_s(one, question))


def _owed_s(one: Standing, question: Question) -> float:
    return 0.0 if one.owed_since_s is None else question.now_s - one.owed_since_s


def _none(one: Standing, question: Question) -> float:
    return 0.0


def _templates(one: Standing, question: Question) -> float:
    if one.load is None:
        return _LAST if one.in_flight else _FIRST
    return float(one.load.templates)


def _answer_s(one: Standing, question: Question) -> float:
    if one.load is None or question.now_s - one.at_s > _FORGOTTEN_S:
        return _owed_s(one, question) if one.in_flight else _FIRST
    return one.answer_s


ORDERED = frozenset({"adaptive"})
"""Policies under which events of one address, emitted one after the other, go to one member while the line stands still."""

COSTS: Mapping[str, Cost] = {
    "adaptive": _wait_s,
    "unordered": _wait_s,
    "random": _none,
    "least-subscriptions": _templates,
    "response-time": _answer_s,
}


def choose(
    names: Sequence[str],
    known: Mapping[str, Standing],
    *,
    now_s: float,
    dice: float,
    policy: str = "adaptive",
) -> str:
    """The cheapest of these; ties go by `dice`, in [0, 1)."""
    if len(names) == 1:
        return names[0]
    standings = [known.get(name, UNKNOWN) for name in names]
    rates = [one.load.service_per_s for one in standings if one.load and one.load.service_per_s > 0]
    question = Question(now_s, sum(rates) / len(rates) if rates else 1.0)
    costs = [COSTS[policy](one, question) for one in standings]
    least = min(costs)
    best = [name for name, cost in zip(names, costs, strict=True) if cost == least]
    return best[int(dice * len(best))]


def averaged(before_s: float | None, answer_s: float) -> float:
    """The averaged answer time, with one answer more."""
    return answer_s if before_s is None else before_s + _WEIGHT * (answer_s - before_s)
