"""When a program or a task that died is started again. Pure: times are arguments."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_WAIT_S = 0.1
"""A single crash should hardly be noticed."""

LONGEST_WAIT_S = 5.0
"""What cannot start must not take the machine with it; its cure must not wait long either."""

HEALTHY_LIFE_S = 30.0
"""After so long a life a death is news, not the next step of a series."""


@dataclass(frozen=True, slots=True)
class Backoff:
    deaths: int = 0
    """In a row, each after a short life."""

    @property
    def wait_s(self) -> float:
        """Before the next start."""
        if self.deaths == 0:
            return 0.0
        # The exponent has a limit: 2.0**1024 is an error, and far beyond the longest wait anyway.
        return min(FIRST_WAIT_S * 2.0 ** min(self.deaths - 1, 30), LONGEST_WAIT_S)

    def after_death(self, lived_s: float) -> Backoff:
        return Backoff(1 if lived_s >= HEALTHY_LIFE_S else self.deaths + 1)
