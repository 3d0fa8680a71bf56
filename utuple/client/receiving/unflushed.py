"""Positions that were acknowledged in a space and that no server has confirmed: its server was down when the reader was
closed. The reader's next opening in this space is given them, so that what was acknowledged does not come again. Pure."""

from __future__ import annotations


class Unflushed:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._positions: dict[bytes, dict[str, int]] = {}
        """By formal, the one that was closed last at the end; then by origin."""

    def keep(self, formal: bytes, positions: dict[str, int]) -> None:
        self._positions.pop(formal, None)
        if positions:
            self._positions[formal] = positions
        if len(self._positions) > self._limit:
            del self._positions[next(iter(self._positions))]

    def pop(self, formal: bytes) -> dict[str, int]:
        """They are the caller's now: to have them flushed, or kept again."""
        return self._positions.pop(formal, {})
