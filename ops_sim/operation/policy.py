"""When servers are bought, and how many (section 4.2): the knobs of the operator's rule. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from ops_sim.operation.demand import DAYS_MAX
from utuple.errors import InvalidInput
from utuple.model.settings import share, whole

WINDOW_DAYS_MAX = 60
SERVERS_MAX = 10_000_000
"""Nobody buys more. Where a prediction runs away, or what is copied alone fills a server, the order stops here."""


class Predictor(StrEnum):
    LEVEL = "level"
    """The mean of the window: no trend."""
    LINEAR = "linear"
    """A straight line through the window, as in the paper."""
    GROWTH = "growth"
    """A straight line through the logarithms: the same per cent every day."""


@dataclass(frozen=True, slots=True)
class Policy:
    name: str = "paper"
    horizon_days: int = 60
    """How far ahead is predicted."""
    window_days: int = 7
    """The prediction is made from so many days."""
    buy_above: float = 0.9
    """If predicted usage is above this, servers are bought."""
    size_below: float = 0.7
    """So many servers are bought that predicted usage falls below this."""
    predictor: Predictor = Predictor.LINEAR
    size_for_installation: bool = False
    """Size for `horizon_days` after the servers are installed, not after the decision."""
    orders_count: bool = True
    """Servers on order count in the test against `buy_above`; they are always subtracted from what is bought."""

    def __post_init__(self) -> None:
        whole("policy.horizon_days", self.horizon_days, 0, DAYS_MAX)
        whole("policy.window_days", self.window_days, 1, WINDOW_DAYS_MAX)
        if self.predictor is not Predictor.LEVEL and self.window_days < 2:
            raise InvalidInput("policy.window_days", self.window_days, "a trend needs two days")
        for name in ("buy_above", "size_below"):
            share(f"policy.{name}", getattr(self, name))
        if self.size_below > self.buy_above:
            rule = f"must not be above buy_above ({self.buy_above:g})"
            raise InvalidInput("policy.size_below", self.size_below, rule)

    def ahead_days(self, lead_time_days: int) -> int:
        """For which day the number of servers is sized, counted from the decision."""
        return self.horizon_days + (lead_time_days if self.size_for_installation else 0)

    def weights(self, seen_days: int, ahead_days: int) -> tuple[float, ...]:
        """The prediction as a weighted sum of the last `seen_days`, newest first.

        A straight line by least squares is linear in what it is drawn through: with mean m and slope b it says
        m + b·(half the window + ahead).
        """
        is_flat = self.predictor is Predictor.LEVEL or seen_days == 1
        return _weights(is_flat, seen_days, ahead_days)


@lru_cache(maxsize=4096)
def _weights(is_flat: bool, seen_days: int, ahead_days: int) -> tuple[float, ...]:
    if is_flat:
        return (1 / seen_days,) * seen_days
    middle = (seen_days - 1) / 2
    squares = seen_days * (seen_days * seen_days - 1) / 12
    reach = (middle + ahead_days) / squares
    return tuple(1 / seen_days + (middle - back) * reach for back in range(seen_days))


def servers_to_fall_below(servers_at_share: float) -> int:
    """The least whole number of servers with which usage is strictly below the share: with `servers_at_share` it is just at it."""
    return math.floor(min(servers_at_share, SERVERS_MAX - 1)) + 1


PAPER_RULE = Policy()
PAPER_VARIANT = Policy("paper-variant", size_for_installation=True, orders_count=False)
