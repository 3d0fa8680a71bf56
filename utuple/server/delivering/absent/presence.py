"""How long a reader is here (ON) and away (OFF), and how much arrives for it: what ζ is computed from. Pure.

Every period that ends is a sample; older ones count less and less, so that ζ follows a reader that changes its habits. The
rate of matches is this server's own, with that of the other members as the reader has told; only the reader knows how fast
it works, over all of them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from utuple.cluster.on_off_queue import OnOffQueue, zeta_for_mean, zeta_for_share
from utuple.errors import InvalidInput
from utuple.model.columns import MICROSECONDS
from utuple.model.terms import DropPolicy

REMEMBERED = 32
"""Periods of each kind, about: the weight of a sample falls to a third after so many more."""
LEAST_SAMPLES = 5
"""Of ON and of OFF periods; with fewer nothing is dropped."""
_KEPT = 1 - 1 / REMEMBERED


@dataclass(slots=True)
class Presence:
    is_on: bool
    since_us: int
    on_count: float = 0.0
    on_sum_s: float = 0.0
    off_count: float = 0.0
    off_sum_s: float = 0.0
    matches: float = 0.0
    """Within `measured_s`, both fading."""
    measured_s: float = 0.0
    arrived: int = 0
    """Since `since_us`."""
    others_per_s: float = 0.0
    """Matches at other members, as the reader has told."""
    service_per_s: float = 0.0
    """What its program takes while there is something to take, as the reader has told; 0: not known."""
    zeta: float | None = None
    """Of the last absence."""
    dropped: int = 0
    """Declared to its reader."""

    def turn(self, now_us: int, *, is_on: bool) -> None:
        """A period ends. One that a clock set back has made negative is no sample."""
        period_s = (now_us - self.since_us) / MICROSECONDS
        if is_on != self.is_on and period_s >= 0:
            if self.is_on:
                self.on_count = self.on_count * _KEPT + 1
                self.on_sum_s = self.on_sum_s * _KEPT + period_s
            else:
                self.off_count = self.off_count * _KEPT + 1
                self.off_sum_s = self.off_sum_s * _KEPT + period_s
            self.matches = self.matches * _KEPT + self.arrived
            self.measured_s = self.measured_s * _KEPT + period_s
        self.is_on, self.since_us, self.arrived = is_on, now_us, 0

    @property
    def on_s(self) -> float:
        return self.on_sum_s / self.on_count if self.on_count else 0.0

    @property
    def off_s(self) -> float:
        return self.off_sum_s / self.off_count if self.off_count else 0.0

    @property
    def own_per_s(self) -> float:
        return self.matches / self.measured_s if self.measured_s > 0 else 0.0

    @property
    def arrival_per_s(self) -> float:
        """λ over all members."""
        return self.own_per_s + self.others_per_s

    def zeta_for(self, policy: DropPolicy) -> float | None:
        """ζ for an absence that begins now; None: too few samples, nothing is dropped. Where no ζ meets the threshold,
        0 comes nearest to it."""
        enough = min(self.on_count, self.off_count) > LEAST_SAMPLES * _KEPT**LEAST_SAMPLES
        known = (self.arrival_per_s, self.service_per_s, self.on_s, self.off_s)
        if policy.kind != "respond_within" or not enough or not all(part > 0 for part in known):
            return None
        queue = OnOffQueue(*known)
        try:
            if policy.share is None:
                return zeta_for_mean(queue, policy.number)
            return zeta_for_share(queue, policy.number, policy.share)
        except InvalidInput:
            return 0.0

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def decode_presence(body: bytes) -> Presence:
    form = json.loads(body)
    return Presence(**{one.name: form[one.name] for one in fields(Presence) if one.name in form})
