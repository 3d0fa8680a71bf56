"""Fair shares: how much of a server one identity may use. Pure; of a secured server only, since else nobody is known.

Who is over a limit is told its name and when to come again; nobody else notices. What a single request may be at most is a rule and not
a share: it is refused for good. Counts are kept in memory: what an identity stored before the server started is not held against it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from utuple.errors import InvalidInput, Overloaded
from utuple.model.columns import MICROSECONDS
from utuple.model.condition import decode_where
from utuple.model.limits import MAX_CONDITIONS, MAX_DATA_BYTES, MAX_LIFETIME_S
from utuple.model.utuple import Kind
from utuple.security.shares import AGAIN_S, AtOnce, Rate, Shares, check_above_0, over_share
from utuple.server.writing.request import Request

_REMEMBERED = 100_000
_BUCKET_S = 3_600
_ROW_BYTES = 200
"""What a row takes beside its payload, with its indexes, at least."""


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """Of one identity, at one server."""

    share_registrations_per_s: float = 500_000.0
    """uTuples a second in the long run, and twice as many at once: more than a server takes from all."""
    share_efs: int = 100_000
    """EFs and CAs that are kept: each is matched with every event, or device, of its subject and type."""
    share_cfs: int = 100_000
    """CFs that are kept; one that was cancelled counts for as long as it would have lived."""
    share_streams: int = 256
    """Streams of deliveries and of registrations that are open: a space has one of each."""
    share_stored_bytes: int = 70 * 10**9
    """Of what it has registered since the server started and has not expired: half of the usual capacity."""
    share_payload_bytes: int = MAX_DATA_BYTES
    """Of the data of one uTuple."""
    share_batch_rows: int = 100_000
    """uTuples of one call: it is checked and judged in one go."""
    share_lifetime_s: float = float(MAX_LIFETIME_S)
    """The longest lifetime, for everybody; a grant may say less."""
    share_conditions: int = MAX_CONDITIONS
    """Fields that one template asks something of."""

    def __post_init__(self) -> None:
        check_above_0(self)


class _Used:
    """By one identity."""

    def __init__(self) -> None:
        self.efs: set[bytes] = set()
        self.cfs: dict[bytes, float] = {}
        """With when each expires, unless its program is attached."""
        self.stored: dict[int, int] = {}
        """Bytes by the hour in which they expire."""

    def stored_bytes(self, now_s: float) -> int:
        over = [bucket for bucket in self.stored if bucket * _BUCKET_S <= now_s]
        for bucket in over:
            del self.stored[bucket]
        return sum(self.stored.values())


class FairShares:
    def __init__(self, limits: ShareLimits, is_kept: Callable[[bytes], bool]) -> None:
        """`is_kept`: does the server still have this EF or CA?"""
        self._limits = limits
        self._is_kept = is_kept
        rate = limits.share_registrations_per_s
        self._rate = Shares(Rate("share_registrations_per_s", rate, 2 * rate), _REMEMBERED)
        self._used: dict[str, _Used] = {}
        self._streams = AtOnce("share_streams", limits.share_streams)

    def wait_s(self, who: str, rows: int, now_s: float) -> float:
        """How long this one has to wait before it may register so many; 0 mostly."""
        return self._rate.wait_s(who, rows, now_s)

    def check(self, who: str, rows: int, now_s: float) -> None:
        """Before a request is decoded, which may take milliseconds: raises Overloaded if it would not be admitted."""
        if (wait_s := self.wait_s(who, rows, now_s)) > 0:
            raise self._over(who, "share_registrations_per_s", wait_s)

    def admit(self, who: str, request: Request, size_bytes: int, now_s: float) -> None:
        """Raises Overloaded with the limit's name, and nothing of it is counted; or InvalidInput for what is too large."""
        self._check_size(request)
        wait_s = self._rate.spend(who, request.rows, now_s) if request.rows else 0.0
        if wait_s > 0:
            raise self._over(who, "share_registrations_per_s", wait_s)
        used = self._used.get(who)
        if used is None:
            used = self._used[who] = _Used()
        if request.templates:
            self._count_efs(who, used, request)
        if len(request.devices):
            self._count_cfs(who, used, request, now_s)
        if len(request.events):
            self._count_bytes(who, used, request, size_bytes, now_s)

    def _check_size(self, request: Request) -> None:
        limits = self._limits
        if request.rows > limits.share_batch_rows:
            raise _too_large("share_batch_rows", request.rows, limits.share_batch_rows)
        for columns in (request.events, request.devices):
            if not len(columns):
                continue
            longest_s = max(columns.lifetimes_us) / MICROSECONDS
            if longest_s > limits.share_lifetime_s:
                raise _too_large("share_lifetime_s", longest_s, limits.share_lifetime_s)
        if len(request.events):
            largest = max(map(len, request.events.payloads))
            if largest > limits.share_payload_bytes:
                raise _too_large("share_payload_bytes", largest, limits.share_payload_bytes)
        for _, half in request.templates:
            asked = len(decode_where(half.payload)) if half.kind is Kind.EF else 0
            if half.kind is Kind.CA and len(half.payload) > limits.share_payload_bytes:
                largest = len(half.payload)
                raise _too_large("share_payload_bytes", largest, limits.share_payload_bytes)
            self.check_conditions(asked)
            if half.lifetime_s > limits.share_lifetime_s:
                raise _too_large("share_lifetime_s", half.lifetime_s, limits.share_lifetime_s)

    def check_conditions(self, asked: int) -> None:
        """Of one template, also of one that is read by and not kept."""
        if asked > (most := self._limits.share_conditions):
            raise _too_large("share_conditions", asked, most)

    def _count_efs(self, who: str, used: _Used, request: Request) -> None:
        came = {half.id for _, half in request.templates if half.lifetime_s > 0}
        most = self._limits.share_efs
        if len(used.efs) + len(came - used.efs) > most:
            used.efs = set(filter(self._is_kept, used.efs))
        if len(used.efs) + len(came - used.efs) > most:
            raise self._over(who, "share_efs", AGAIN_S)
        used.efs |= came

    def _count_cfs(self, who: str, used: _Used, request: Request, now_s: float) -> None:
        rows = zip(request.devices.each_id(), request.devices.lifetimes_us, strict=True)
        came = {id_: now_s + lifetime_us / MICROSECONDS for id_, lifetime_us in rows}
        most = self._limits.share_cfs
        if len(used.cfs) + len(came.keys() - used.cfs.keys()) > most:
            used.cfs = {id_: until_s for id_, until_s in used.cfs.items() if until_s > now_s}
        if len(used.cfs) + len(came.keys() - used.cfs.keys()) > most:
            raise self._over(who, "share_cfs", AGAIN_S)
        used.cfs |= came

    def _count_bytes(
        self, who: str, used: _Used, request: Request, size_bytes: int, now_s: float
    ) -> None:
        longest_s = max(request.events.lifetimes_us) / MICROSECONDS
        if longest_s <= 0:
            return
        weight = size_bytes + _ROW_BYTES * len(request.events)
        if used.stored_bytes(now_s) + weight > self._limits.share_stored_bytes:
            raise self._over(who, "share_stored_bytes", AGAIN_S)
        bucket = int((now_s + longest_s) // _BUCKET_S) + 1
        used.stored[bucket] = used.stored.get(bucket, 0) + weight

    def stream(self, who: str) -> AbstractContextManager[None]:
        """One more, for as long as it is open."""
        return self._streams.use(who)

    def _over(self, who: str, name: str, wait_s: float) -> Overloaded:
        return over_share(who, name, getattr(self._limits, name), wait_s)


def _too_large(name: str, value: float, limit: float) -> InvalidInput:
    return InvalidInput(name, value, f"must be at most {limit:,.0f} here")
