"""Fair shares of an sCA server: how much of it one identity may use. Pure; of a secured one only, since else nobody is known.

Who is over is told the limit's name and when to come again, and costs no more than reading its call; nobody else notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from utuple.security.shares import AGAIN_S, AtOnce, Rate, Shares, check_above_0, over_share

_REMEMBERED = 100_000
_BURST_S = 2.0
"""What may come at once: as much as in so many seconds."""


@dataclass(frozen=True, slots=True)
class ScaShareLimits:
    """Of one identity, at one sCA server."""

    share_commands_per_s: float = 50_000.0
    """In the long run, and twice as many at once: half of what an sCA server takes from all."""
    share_unconfirmed: int = 100_000
    """Commands that wait for their devices to confirm: a fifth of `max_unconfirmed`, beyond which nobody's are taken."""
    share_registrations_per_s: float = 200_000.0
    """CFs in the long run, and twice as many at once: a gateway of a million devices is back within seconds."""
    share_cfs: int = 1_000_000
    """CFs that are kept: a quarter of `max_devices`."""
    share_streams: int = 256
    """Streams of deliveries that are open: a space has one."""

    def __post_init__(self) -> None:
        check_above_0(self)


class ScaShares:
    def __init__(self, limits: ScaShareLimits, kept_by: Callable[[str], int]) -> None:
        """`kept_by`: how many CFs of this identity are kept here."""
        self._limits = limits
        self._kept_by = kept_by
        self._commands = _per_s("share_commands_per_s", limits.share_commands_per_s)
        self._registrations = _per_s("share_registrations_per_s", limits.share_registrations_per_s)
        self._unconfirmed = AtOnce("share_unconfirmed", limits.share_unconfirmed)
        self._streams = AtOnce("share_streams", limits.share_streams)

    @contextmanager
    def commands(self, who: str, count: int, now_s: float) -> Iterator[None]:
        """So many, for as long as they wait for their devices. Raises Overloaded, as the others do."""
        with self._unconfirmed.use(who, count):
            self._spend(self._commands, who, "share_commands_per_s", count, now_s)
            yield

    def register(self, who: str, rows: int, new: int, now_s: float) -> None:
        """So many rows, of which so many are not kept yet."""
        self.keep(who, new)
        self._spend(self._registrations, who, "share_registrations_per_s", rows, now_s)

    def keep(self, who: str, new: int) -> None:
        if new and self._kept_by(who) + new > self._limits.share_cfs:
            raise over_share(who, "share_cfs", self._limits.share_cfs, AGAIN_S)

    def stream(self, who: str) -> AbstractContextManager[None]:
        """One more, for as long as it is open."""
        return self._streams.use(who)

    def _spend(self, shares: Shares, who: str, name: str, amount: int, now_s: float) -> None:
        wait_s = shares.spend(who, amount, now_s) if amount else 0.0
        if wait_s > 0:
            raise over_share(who, name, getattr(self._limits, name), wait_s)


def _per_s(name: str, per_s: float) -> Shares:
    return Shares(Rate(name, per_s, _BURST_S * per_s), _REMEMBERED)
