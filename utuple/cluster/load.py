"""Load: what every answer of a server says about its queue, and the wait one may expect from it."""

from __future__ import annotations

from dataclasses import dataclass

_SLOWEST_PER_S = 1e-3


@dataclass(frozen=True, slots=True)
class Load:
    queued: float = 0.0
    """uTuples waiting for the writer."""
    arrival_per_s: float = 0.0
    service_per_s: float = 0.0
    busy: float = 0.0
    """Share of the last seconds in which the writer was at work: the processing load."""
    templates: int = 0
    """EFs that every EA is matched against."""

    def expected_wait_s(self, elapsed_s: float, uncounted: float = 0.0) -> float:
        """BlueDove III-B: the queue extrapolated since the answer, (q + (λ - μ)·Δt + 1) / μ, with what
        was sent since and is not in q."""
        drift = (self.arrival_per_s - self.service_per_s) * elapsed_s
        queue = max(0.0, self.queued + drift) + uncounted
        return (queue + 1) / max(self.service_per_s, _SLOWEST_PER_S)
