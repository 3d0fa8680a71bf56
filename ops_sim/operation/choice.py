"""Which policy to take: those that nothing beats, and the cheapest whose risk one accepts, with the reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
"""A row of `schema.POLICIES`."""

COST, RISK = "server_days", "scenarios_above_100"
_OBJECTIVES = (COST, RISK, "scenarios_above_90")
"""Less is better in each."""


def beats(one: Row, other: Row) -> bool:
    """Nowhere worse, somewhere better."""
    pairs = [(one[name], other[name]) for name in _OBJECTIVES]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def front(rows: Sequence[Row]) -> list[str]:
    """Policies that no other beats (Pareto), cheapest first."""
    kept = [row for row in rows if not any(beats(other, row) for other in rows)]
    return [row["policy"] for row in sorted(kept, key=_order)]


@dataclass(frozen=True, slots=True)
class Recommendation:
    policy: str
    meets_risk: bool
    reason: str


def recommend(rows: Sequence[Row], risk: float) -> Recommendation:
    """The cheapest within the risk; if none is, the least risky."""
    within = [row for row in rows if row[RISK] <= risk]
    if not within:
        best = min(rows, key=lambda row: (row[RISK], *_order(row)))
        reason = (
            f"No policy keeps to the stated risk of {risk:.1%}. {best['policy']} comes nearest: load exceeds what "
            f"there is in {best[RISK]:.1%} of the scenarios, with {best[COST]:,.0f} server-days. A longer horizon, "
            "a shorter lead time or a lower threshold would be needed."
        )
        return Recommendation(best["policy"], False, reason)
    best = min(within, key=_order)
    said = [
        f"Of {len(rows)} policies, {len(within)} keep the chance that load ever exceeds what there is "
        f"to {risk:.1%} or less. {best['policy']} is the cheapest of them: {best[COST]:,.0f} server-days "
        f"on average, above 100 % in {best[RISK]:.1%} and above 90 % in {best['scenarios_above_90']:.1%} "
        f"of the scenarios."
    ]
    if cheaper := [row for row in rows if _order(row) < _order(best)]:
        next_one = max(cheaper, key=_order)
        saved = 1 - next_one[COST] / best[COST]
        said.append(
            f"The next cheaper one, {next_one['policy']}, saves {saved:.1%} but exceeds in "
            f"{next_one[RISK]:.1%}."
        )
    if dearer := [row for row in within if row[RISK] < best[RISK]]:
        safer = min(dearer, key=_order)
        more = safer[COST] / best[COST] - 1
        said.append(f"{safer['policy']} would lower that to {safer[RISK]:.1%} for {more:.1%} more.")
    return Recommendation(best["policy"], True, " ".join(said))


def _order(row: Row) -> tuple[float, float, str]:
    return row[COST], row[RISK], row["policy"]
