"""The inner level: how many servers are required. Pure.

Formula 1 of the paper, as the Horizontal Pod Autoscaler of Kubernetes has it, for processing and for what is stored; the larger
one counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from load_monitor.elastic.policy import ServerRules
from load_monitor.elastic.seen import Seen

_ROUNDING = 1e-9
"""2 x 0.9 / 0.6 is three servers, whatever a float says."""


def required(current: int, present: float, target: float) -> int:
    """So many servers of load `target` do what `current` ones of load `present` do."""
    return math.ceil(current * present / target - _ROUNDING)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many servers there should be now, and why, in words."""

    count: int
    why: str


def wanted(seen: Seen, rules: ServerRules, is_calm: bool) -> Wanted:
    """`is_calm`: the load has been below the lower threshold for long enough."""
    current = seen.current
    count = len(current)
    least = min(max(rules.min, seen.floor), rules.max)
    if count < least:
        said = f"at least {least} are wanted" + (" by the forecast" if seen.floor >= least else "")
        return Wanted(least, f"{_servers(count)} {_serve(count)}, and {said}")
    if count > rules.max:
        return Wanted(rules.max, f"{_servers(count)} {_serve(count)}, and at most {rules.max} may")
    if not count:
        return Wanted(0, "no server serves")
    processing = sum(server.processing for server in current) / count
    memory = sum(server.memory for server in current) / count
    ahead = max(0.0, seen.growth_per_s) * rules.ahead_s / count
    more = _more(rules, count, processing + ahead, memory)
    if more is not None:
        grown = f" ({processing:.0%} now, and growing)" if ahead > 0.005 else ""
        return Wanted(*_limited(rules, count, more.count, more.why + grown))
    if processing >= rules.lower:
        band = f"between {rules.lower:.0%} and {rules.upper:.0%}"
        return Wanted(count, f"{_servers(count)} {_are(count)} {processing:.0%} busy, {band}")
    present = max(_lately(seen), processing + ahead)
    return _fewer(rules, count, least, present, memory, is_calm)


def is_low(seen: Seen, rules: ServerRules) -> bool:
    return bool(seen.current) and _lately(seen) < rules.lower


def are_needed(seen: Seen, rules: ServerRules) -> bool:
    """Are more servers than these still needed? Without the band: those that wait for a place are not given up for a dip."""
    count = len(seen.current)
    return bool(count) and required(count, _lately(seen), rules.target) > count


def _lately(seen: Seen) -> float:
    """The mean load, but falling slowly."""
    current = seen.current
    return sum(max(s.processing, s.processing_lately) for s in current) / len(current)


def _more(rules: ServerRules, count: int, processing: float, memory: float) -> Wanted | None:
    asked = []
    if processing > rules.upper + _ROUNDING:
        asked.append((required(count, processing, rules.target), processing, rules.target, "busy"))
    if memory > rules.memory_upper + _ROUNDING:
        asked.append(
            (required(count, memory, rules.memory_target), memory, rules.memory_target, "full")
        )
    if not asked:
        return None
    needed, present, target, how = max(asked)
    why = f"{_servers(count)} {_are(count)} {present:.0%} {how}: ceil({count} x {present:.0%} / {target:.0%}) = {needed}"
    return Wanted(needed, why)


def _limited(rules: ServerRules, count: int, needed: int, why: str) -> tuple[int, str]:
    at_once = max(int(count * rules.growth_max), rules.growth_floor)
    if needed > at_once:
        needed, why = at_once, f"{why}, at most {at_once} after one decision"
    if needed > rules.max:
        needed, why = rules.max, f"{why}, at most {rules.max} may serve"
    return max(needed, count), why


def _fewer(
    rules: ServerRules, count: int, least: int, present: float, memory: float, is_calm: bool
) -> Wanted:
    """One at a time: each drain moves what the server holds, and what that costs is seen before the next."""
    if present >= rules.lower:
        return Wanted(count, f"{_servers(count)} were {present:.0%} busy a moment ago")
    said = f"{_servers(count)} {_are(count)} {present:.0%} busy, below {rules.lower:.0%}"
    if count <= least:
        return Wanted(count, f"{said}, and {least} stay in any case")
    needed = required(count, present, rules.target)
    if needed >= count:
        return Wanted(count, f"{said}, yet {needed} are needed to stay at {rules.target:.0%}")
    stored = required(count, memory, rules.memory_target)
    if stored >= count:
        return Wanted(
            count, f"{said}, but {memory:.0%} full: what they hold would not fit on fewer"
        )
    if not is_calm:
        return Wanted(count, f"{said}, not yet for {rules.calm_s:g} s")
    return Wanted(count - 1, f"{said} for {rules.calm_s:g} s: {max(1, needed)} would do")


def _servers(count: int) -> str:
    return "1 server" if count == 1 else f"{count} servers"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _serve(count: int) -> str:
    return "serves" if count == 1 else "serve"
