"""Load: what every answer of a server says about its queue, and the wait one may expect from it."""

from __future__ import annotations

from dataclasses import dataclass

_SLOWEST_PER_S = 1e-3


@dataclass(frozen=True, slots=True)
class LoadByCause:
    """What a server, or a section at it, is busy with: shares of time."""

    events: float = 0.0
    """EAs and CFs: each goes to one member, so that help relieves the others of it."""
    searches: float = 0.0
    """EFs, CAs and reads, and the searches they ask for: they go to every member."""
    deliveries: float = 0.0
    """Live matches: they leave from the member that took the EA."""

    @property
    def total(self) -> float:
        return self.events + self.searches + self.deliveries

    @property
    def each(self) -> tuple[float, float, float]:
        return self.events, self.searches, self.deliveries

    def __add__(self, other: LoadByCause) -> LoadByCause:
        return LoadByCause(
            self.events + other.events,
            self.searches + other.searches,
            self.deliveries + other.deliveries,
        )


NO_LOAD = LoadByCause()


@dataclass(frozen=True, slots=True)
class Load:
    queued: float = 0.0
    """uTuples waiting for the writer."""
    arrival_per_s: float = 0.0
    service_per_s: float = 0.0
    busy: float = 0.0
    """What it bears, as a share of time: the processing load. The writer, searches and deliveries together."""
    templates: int = 0
    """EFs that every EA is matched against."""

    def expected_wait_s(self, elapsed_s: float, uncounted: float = 0.0) -> float:
        """BlueDove III-B: the queue extrapolated since the answer, (q + (λ - μ)·Δt + 1) / μ, with what
        was sent since and is not in q."""
        drift = (self.arrival_per_s - self.service_per_s) * elapsed_s
        queue = max(0.0, self.queued + drift) + uncounted
        return (queue + 1) / max(self.service_per_s, _SLOWEST_PER_S)
