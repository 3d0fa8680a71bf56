"""A reader as one server tells of it."""

from __future__ import annotations

from dataclasses import dataclass

from utuple.wire import utuple_pb2 as pb


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who reads at one server; those without a name share one."""

    reader: str
    formals: int
    connected: bool
    lag: int
    lag_is_more: bool = False
    """Than that: no more were counted."""
    families: tuple[str, ...] = ()
    seen_us: int | None = None
    expires_us: int | None = None
    terms: str = ""
    """Of delivery, JSON; empty: the default."""
    on_s: float = 0.0
    off_s: float = 0.0
    arrival_per_s: float = 0.0
    service_per_s: float = 0.0
    zeta: float | None = None
    dropped: int = 0
    parked: int = 0
    seats: int = 0
    open: int = 0


def reader_of(message: pb.ReaderStatus) -> Reader:
    return Reader(
        message.reader,
        message.formals,
        message.connected,
        message.lag,
        message.lag_is_more,
        tuple(f"{family.subject}/{family.type}" for family in message.families),
        message.seen_us or None,
        message.expires_us or None,
        message.terms,
        message.on_s,
        message.off_s,
        message.arrival_per_s,
        message.service_per_s,
        message.zeta if message.HasField("zeta") else None,
        message.dropped,
        message.parked,
        message.seats,
        message.open,
    )
