"""What an HTTP door is told, and every limit of it by name. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one client may ask of a door, and all of them together."""

    connections: int = 5_000
    """Open at once; who comes then is closed at once."""
    streams: int = 1_000
    """Answers that last (live events, commands of devices, consoles) at once; who comes then is answered 503."""
    request_s: float = 15.0
    """The head of a request must come within this time, from the connection on and from its first byte on."""
    head_bytes: int = 64 << 10
    """The largest head of a request: its address and headers."""
    keep_alive_s: float = 75.0
    """An idle connection between two requests is kept so long."""
    stalled_s: float = 20.0
    """A client that takes nothing for so long is dropped; the same for a body of which nothing comes."""
    body_bytes: int = 2 << 20
    """The largest JSON body, and the longest line of NDJSON: a uTuple has at most 1 MiB."""
    batch_rows: int = 10_000
    """Events of NDJSON in one call to the space."""
    batch_bytes: int = 4 << 20
    """The same, in bytes."""
    calls: int = 3
    """Calls with events of one request that are on their way at once; what comes meanwhile is the next batch."""
    refusals: int = 1_000
    """Refused rows that are told one by one; the rest is counted, and nothing more is read."""
    heartbeat_s: float = 15.0
    """A stream says something at least so often, so that a broken connection is noticed."""
    take_events: int = 500
    """Live events in one write."""
    write_bytes: int = 128 << 10
    """Live events in one write, in bytes."""
    unacknowledged: int = 10_000
    """Events of a named reader that it has not acknowledged, by Last-Event-ID or an ack: with so many its stream ends, so that
    its client comes back and says how far it is, as clients of server-sent events do by themselves."""
    unacknowledged_s: float = 300.0
    """The same, if the oldest of them was sent so long ago."""
    readers_remembered: int = 1_000
    """Named readers whose last events this door remembers."""
    receipts: int = 10_000
    """Receipts of commands this door sent that can still be asked for; of those with a lifetime, any door knows."""
    look_s: float = 1.0
    """Between two looks at the cluster while a console is open."""
    look_idle_s: float = 10.0
    """The same while none is: the consoles' charts begin with these."""
    readers_look_s: float = 5.0
    """Between two looks at the readers, whose lag is counted in the stores."""
    history: int = 900
    """Samples of each server that charts begin with."""
    plans: int = 1
    """Simulations at once."""
    plan_s: float = 600.0
    """A simulation ends after this."""
    stop_s: float = 5.0
    """When the door stops, what is under way may end within this time."""


@dataclass(frozen=True)
class Config:
    managers: tuple[str, ...]
    listen: str = "127.0.0.1:7480"
    data: str = ""
    """The data folder of the cluster, if it runs on this machine: servers can be added then."""
    limits: Limits = Limits()
    credentials: str = ""
    """Of this door, if the cluster is secured."""
    certificate: str = ""
    """Shown to browsers instead."""
