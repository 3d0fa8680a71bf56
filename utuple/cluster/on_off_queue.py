"""The queue of a reader that comes and goes (paper 004, section III): how long matches wait, and what may be dropped. Pure.

Matches arrive at rate λ. While the reader is there (ON, exponential with mean T_ON) all of them join its queue and are
delivered at rate μ, first come, first served; while it is away (OFF, mean T_OFF) each joins with probability ζ and is
dropped otherwise, and nothing is delivered. A delivery that is interrupted goes on where it stopped.

With a = 1/T_ON and f = 1/T_OFF the number in the queue is a Markov chain over (n, ON or OFF). Its stationary
probabilities are P_n = P_0 Rⁿ, with the 2×2 matrix R of eq. 19 and P_0 of eq. 22; both hold only while the queue is stable,
λ(T_ON + ζT_OFF) < μT_ON. The mean time W follows by Little's law. The distribution of that time follows from its
transform: to accumulate x seconds of ON time takes, in real time, x and the OFF periods that fall in between, whose
transform is exp(−xφ(s)) with φ(s) = s + as/(f + s); a match that finds n before it needs n + 1 exponential deliveries, so

    W*(s) = Σ_n (P_n,on + ζ P_n,off · f/(f+s)) y^(n+1) / (P_on + ζ P_off),    y = μ/(μ + φ(s)),

and Σ P_n yⁿ = P_0 (I − yR)⁻¹. `ops_sim/dropping` checks all of it against a numeric solution and a simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from utuple.errors import InvalidInput

_HALVINGS = 80
"""Steps of a bisection over ζ: far below what a double can tell apart."""
_EULER_TERMS = 15
_EULER_AVERAGED = 11
_EULER_A = 18.4
"""Inversion of a transform by Euler summation (Abate and Whitt 1995): the error of the method is exp(−18.4), about 1e-8."""


@dataclass(frozen=True)
class OnOffQueue:
    arrival_per_s: float
    """λ: matches per second."""
    service_per_s: float
    """μ: deliveries per second while the reader is there."""
    on_s: float
    """Mean time the reader is there."""
    off_s: float
    """Mean time it is away."""
    zeta: float = 1.0
    """ζ: the share of what arrives while it is away that joins the queue."""
    input_service_per_s: float | None = None
    """The rate of a queue before this one (the server's own work), if it counts: every match passes through it first."""

    def __post_init__(self) -> None:
        for field in ("arrival_per_s", "service_per_s", "on_s", "off_s"):
            _check_positive(field, getattr(self, field))
        if self.input_service_per_s is not None:
            _check_positive("input_service_per_s", self.input_service_per_s)
            if self.arrival_per_s >= self.input_service_per_s:
                raise InvalidInput(
                    "input_service_per_s",
                    self.input_service_per_s,
                    f"must be above the {self.arrival_per_s:g} that arrive per second",
                )
        if not 0 <= self.zeta <= 1:
            raise InvalidInput("zeta", self.zeta, "must be a share, 0 to 1")

    @property
    def is_stable(self) -> bool:
        """Is delivered, while the reader is there, more than joins?"""
        joining_s = self.on_s + self.zeta * self.off_s
        return self.arrival_per_s * joining_s < self.service_per_s * self.on_s

    @property
    def joining_per_s(self) -> float:
        """λ_eff: what joins, and in a stable queue is delivered, per second."""
        return self.arrival_per_s * self.success_share

    @property
    def success_share(self) -> float:
        """The share of all matches that joins the queue."""
        return (self.on_s + self.zeta * self.off_s) / (self.on_s + self.off_s)

    @property
    def input_wait_s(self) -> float:
        if self.input_service_per_s is None:
            return 0.0
        return 1 / (self.input_service_per_s - self.arrival_per_s)

    @property
    def mean_response_s(self) -> float:
        """From arrival to delivery, of what joins; infinite if the queue only grows."""
        if not self.is_stable:
            return math.inf
        a, f, mu, z = 1 / self.on_s, 1 / self.off_s, self.service_per_s, self.zeta
        arrival = self.arrival_per_s
        above = (a + f) * (f + a * z) + a * z * (mu - arrival * (1 - z))
        below = (f + a * z) * (mu * f - arrival * (f + a * z))
        return above / below + self.input_wait_s

    def share_within(self, seconds: float, *, joined_while_off: bool = False) -> float:
        """The share of deliveries that wait at most so long in this queue; of those that joined while OFF, if asked."""
        if seconds <= 0 or not self.is_stable:
            return 0.0
        return _inverted(lambda s: self._transform(s, joined_while_off) / s, seconds)

    def _transform(self, s: complex, joined_while_off: bool) -> complex:
        """W*(s), by the formula at the top."""
        a, f, mu, z = 1 / self.on_s, 1 / self.off_s, self.service_per_s, self.zeta
        y = mu / (mu + s + a * s / (f + s))
        off, on = self._generating(y)
        off_share, on_share = z * a / (a + f), f / (a + f)
        from_off = z * off * y * f / (f + s)
        if joined_while_off:
            return from_off / off_share
        return (on * y + from_off) / (on_share + off_share)

    def _generating(self, y: complex) -> tuple[complex, complex]:
        """Σ P_n yⁿ = P_0 (I − yR)⁻¹, for OFF and for ON."""
        a, f, mu, z = 1 / self.on_s, 1 / self.off_s, self.service_per_s, self.zeta
        arrival, p = self.arrival_per_s, self.arrival_per_s / self.service_per_s
        leaving = arrival * z + f
        empty_on = (f * (1 - p) - p * z * a) / (a + f)
        empty_off = empty_on * a / leaving
        r00, r01 = p * z * (mu + a) / leaving, p * z
        r10, r11 = p * a / leaving, p
        determinant = (1 - y * r00) * (1 - y * r11) - y * y * r01 * r10
        off = (empty_off * (1 - y * r11) + empty_on * y * r10) / determinant
        on = (empty_off * y * r01 + empty_on * (1 - y * r00)) / determinant
        return off, on


def zeta_for_mean(queue: OnOffQueue, threshold_s: float) -> float:
    """The largest ζ for which the mean response time meets the threshold (paper 004, section II-C)."""
    _check_positive("threshold_s", threshold_s)
    if queue.arrival_per_s >= queue.service_per_s:
        raise InvalidInput(
            "arrival_per_s",
            queue.arrival_per_s,
            f"no threshold can be met: it must be below the {queue.service_per_s:g} delivered per second",
        )
    least_s = replace(queue, zeta=0.0).mean_response_s
    if threshold_s < least_s:
        raise InvalidInput(
            "threshold_s",
            threshold_s,
            f"cannot be met even if everything is dropped while the reader is away: {least_s:.3f} s is the least",
        )
    return _largest_zeta(lambda zeta: replace(queue, zeta=zeta).mean_response_s <= threshold_s)


def zeta_for_share(queue: OnOffQueue, threshold_s: float, share: float) -> float:
    """The largest ζ for which at least this share of deliveries waits no longer than the threshold.

    The time in the queue before (`input_service_per_s`) is counted by its mean: it is short, or nothing else matters.
    """
    _check_positive("threshold_s", threshold_s)
    if not 0 < share < 1:
        raise InvalidInput("share", share, "must lie between 0 and 1, both left out")
    limit_s = threshold_s - queue.input_wait_s
    reached = replace(queue, zeta=0.0).share_within(limit_s)
    if reached < share:
        raise InvalidInput(
            "share",
            share,
            f"cannot be met even if everything is dropped while the reader is away: {reached:.4f} is the most "
            f"that come within {threshold_s:g} s",
        )
    return _largest_zeta(lambda zeta: replace(queue, zeta=zeta).share_within(limit_s) >= share)


def _largest_zeta(is_met: Callable[[float], bool]) -> float:
    """More that joins waits longer, so what is met by one ζ is met by every smaller one."""
    if is_met(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_met(middle) else (low, middle)
    return low


def _inverted(transform: Callable[[complex], complex], t: float) -> float:
    """The value at t of the function with this transform, by Euler summation."""

    def term(k: int) -> float:
        return transform(complex(_EULER_A, 2 * k * math.pi) / (2 * t)).real

    scale = math.exp(_EULER_A / 2) / t
    total = scale * term(0) / 2
    sums = []
    for k in range(1, _EULER_TERMS + _EULER_AVERAGED + 1):
        total += scale * (-1) ** k * term(k)
        sums.append(total)
    last = sums[-_EULER_AVERAGED - 1 :]
    weights = [
        math.comb(_EULER_AVERAGED, k) / 2**_EULER_AVERAGED for k in range(_EULER_AVERAGED + 1)
    ]
    return min(1.0, max(0.0, math.fsum(w * s for w, s in zip(weights, last, strict=True))))


def _check_positive(field: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(field, value, "must be a number")
    if not math.isfinite(value) or value <= 0:
        raise InvalidInput(field, value, "must be above 0 and finite")
