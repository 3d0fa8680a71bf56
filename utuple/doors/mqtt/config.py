"""What a door is told, and every limit of it by name. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from utuple.doors.mqtt.codec import names


@dataclass(frozen=True)
class Limits:
    """What one client may ask of a door, and all of them together."""

    connections: int = 20_000
    """Open at once; who comes then is answered Server busy."""
    connect_s: float = 10.0
    """A connection must say CONNECT within this time."""
    packet_bytes: int = 700_000
    """The largest packet: as base64, which bytes become, it still fits into a uTuple (1 MiB)."""
    receive_maximum: int = 1_000
    """QoS 1 and 2 messages of one client that are not yet acknowledged. MQTT 5 is told; of 3.1.1 nothing more is read."""
    send_maximum: int = 1_000
    """QoS 1 and 2 messages to one client that it has not yet acknowledged, if it does not ask for fewer."""
    topic_aliases: int = 32
    """Per client and direction."""
    subscriptions: int = 1_000
    """Per client."""
    families: int = 200
    """That one subscription over several families may cover: each is an EF of its own."""
    keep_alive_most_s: int = 60
    """Clients of MQTT 5 that would be silent for longer are told to be heard of at least so often."""
    session_expiry_most_s: int = 30 * 86_400
    """A session is kept no longer than this after its client was last seen."""
    sessions_away: int = 10_000
    """Sessions whose client is away that this door still holds in memory; others are found again in the space."""
    write_buffer_bytes: int = 256 << 10
    """Bytes that wait for one client's socket: beyond this its deliveries wait where they are stored."""
    batch_events: int = 4_000
    """Events in one call to the space."""
    calls: int = 4
    """Calls with events that are on their way at once; what comes meanwhile is the next batch."""
    readings: int = 4
    """Readings at once that look for messages that were sent again; and, of one client, for retained ones."""
    waiting_bytes: int = 64 << 20
    """Of events that wait for a call: beyond this no client is read from until there is room."""
    own_remembered: int = 10_000
    """Ids of a client's own messages, for its subscriptions without local messages."""
    retained_most: int = 100_000
    """Retained messages that one subscription is given."""
    stop_s: float = 5.0
    """When the door stops, clients are told so, and what they had published is registered, within this time."""


class Rule(NamedTuple):
    """Names that match the filter are carried, with the prefix before them."""

    pattern: str
    prefix: str = ""


@dataclass(frozen=True)
class BridgeConfig:
    """A broker, and what is carried from it and to it."""

    host: str
    port: int
    tls: bool
    user: str
    password: str
    name: str
    inward: tuple[Rule, ...]
    outward: tuple[Rule, ...]
    credentials: str = ""
    """Of whom the bridge is at its own door, if the cluster is secured."""


def rule_of(text: str) -> Rule:
    """FILTER, or FILTER=PREFIX."""
    pattern, _, prefix = text.partition("=")
    if not names.is_filter(pattern) or names.is_shared(pattern):
        raise ValueError(f"{text!r} must be FILTER or FILTER=PREFIX, such as 'factory/#=site-1/'")
    if names.has_wildcard(prefix):
        raise ValueError(f"{text!r}: a prefix has no wildcards")
    return Rule(pattern, prefix)


@dataclass(frozen=True)
class Config:
    managers: tuple[str, ...]
    listen: str = "127.0.0.1:1883"
    websocket: str = ""
    bridge: BridgeConfig | None = None
    limits: Limits = Limits()
    credentials: str = ""
    """Of this door, if the cluster is secured."""
    certificate: str = ""
    """Shown to clients instead."""
