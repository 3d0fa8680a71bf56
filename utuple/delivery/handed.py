"""What became of a command at one device. The protocol's numbers."""

from __future__ import annotations

from enum import IntEnum


class Handed(IntEnum):
    OPEN = 0
    """It was sent, and its confirmation is awaited. Never said to the caller."""
    HANDED_OVER = 1
    """The device's program has confirmed it."""
    NOT_CONNECTED = 2
    NOT_CONFIRMED = 3
