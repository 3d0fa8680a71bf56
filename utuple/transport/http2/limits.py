"""What a peer may ask of one end of a connection. Every limit has a name, a default and a reason. Pure.

Limits are of two kinds: how much there may be at a time, and how often something may come. What may come often among friends and
costs this end more than the peer is paid for from a `Budget`: so many at once, and so many a second. Who overdraws one is told
to be calm (GOAWAY, ENHANCE_YOUR_CALM) and hung up on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_WINDOW = (1 << 31) - 1
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Rate:
    burst: int
    per_s: float


@dataclass(frozen=True, slots=True)
class Limits:
    handshake_s: float = 10.0
    """For TLS, and then for HTTP/2's first words: a peer that is slower holds a place that others could have."""
    pending: int = 128
    """Connections that have not said their first words yet. When one more comes, the oldest of them gives way: it had the most
    time, and an honest peer needs a few milliseconds. So slow handshakes keep nobody out."""
    connections: int = 4096
    """In all: each costs a file descriptor and some ten kilobytes, with TLS some fifty."""
    connections_per_address: int = 1024
    """Of one remote address, so that one machine cannot have them all. Programs of a cluster need one for each other program."""
    streams_per_connection: int = 256
    """Calls at a time on a connection (SETTINGS_MAX_CONCURRENT_STREAMS); clients of ours wait for a place."""
    stream_window_bytes: int = 4 * MIB
    """Messages that came on a stream and were not taken yet: a program that does not take them holds up only its own stream."""
    connection_window_bytes: int = 16 * MIB
    """What may be on its way on all streams of a connection: more than any network between two programs holds."""
    held_bytes_per_connection: int = 72 * MIB
    """Messages not taken yet and those that are not whole, of all streams of a connection: the largest message and a window."""
    held_bytes: int = 256 * MIB
    """The same, of all connections of a server."""
    buffered_bytes: int = MIB
    """Written, and not yet accepted by the kernel: beyond this, messages are queued by their streams."""
    unsent_control_bytes: int = 64 << 10
    """Answers to pings, settings and calls that wait while the peer does not read. Beyond this nothing more is read from it."""
    frames_per_turn: int = 64
    """Frames of one connection that are handled before others have their turn."""
    frames_per_call: int = 8
    """What a frame that begins a call counts as: its handler runs too. So it is some eight calls a turn, about a millisecond."""
    keepalive_s: float = 10.0
    """A peer that is cut off without a word is noticed after this and the time-out below."""
    keepalive_timeout_s: float = 5.0
    stalled_s: float = 30.0
    """A peer that accepts nothing of what was written for so long is given up."""
    unfinished_s: float = 30.0
    """Headers and messages must be whole so long after they began: the largest one then comes at 2 MiB/s."""
    idle_s: float = 600.0
    """A client's connection without calls is said goodbye to after this."""
    resets: Rate = field(default=Rate(200, 50.0))
    """Calls that the peer makes and takes back (CVE-2023-44487), and streams that it makes us reset (CVE-2025-8671): each costs
    this end what a call costs, and the peer nothing. A client may cancel two hundred calls at once."""
    pings: Rate = field(default=Rate(100, 20.0))
    """Other implementations measure with pings, some ten a second."""
    settings: Rate = field(default=Rate(50, 10.0))
    """Other implementations change their windows as they measure."""
    empty_frames: Rate = field(default=Rate(100, 20.0))
    """DATA, HEADERS and CONTINUATION without content, and frames that say nothing here (PRIORITY, unknown ones)."""
    window_updates: Rate = field(default=Rate(4000, 2000.0))
    """A peer grants room after some kilobytes of what it received; one that grants byte by byte costs a frame for each."""
    blame: Rate = field(default=Rate(60, 2.0))
    """What one remote address may do wrong before its new connections are refused for a while: a connection that broke the
    protocol or a budget counts `BROKEN`, a handshake that failed `FAILED`."""


BROKEN = 20
FAILED = 2


class Budget:
    """A bucket of tokens that fills with time."""

    __slots__ = ("_at_s", "_left", "rate")

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._left: float = rate.burst
        self._at_s: float | None = None

    def spend(self, now_s: float, tokens: float = 1) -> bool:
        """False: there are not so many, and none are taken."""
        left = self.left(now_s)
        if left < tokens:
            return False
        self._left = left - tokens
        self._at_s = now_s
        return True

    def left(self, now_s: float) -> float:
        if self._at_s is None:
            return self._left
        more = (now_s - self._at_s) * self.rate.per_s
        return min(self._left + more, float(self.rate.burst))

    def is_full(self, now_s: float) -> bool:
        return self.left(now_s) >= self.rate.burst


class Budgets:
    """Of one connection."""

    __slots__ = ("empty_frames", "pings", "resets", "settings", "window_updates")

    def __init__(self, limits: Limits) -> None:
        self.resets = Budget(limits.resets)
        self.pings = Budget(limits.pings)
        self.settings = Budget(limits.settings)
        self.empty_frames = Budget(limits.empty_frames)
        self.window_updates = Budget(limits.window_updates)


SERVER = Limits()
CLIENT = Limits(
    streams_per_connection=MOST_WINDOW,
    frames_per_call=1,
    held_bytes_per_connection=MOST_WINDOW,
    held_bytes=MOST_WINDOW,
    idle_s=float("inf"),
)
"""A client chooses whom it calls, and asks for what it gets: it does not limit how much that is."""
