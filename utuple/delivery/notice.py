"""What a reader is told about its formals on its stream."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class News(Enum):
    ATTACHED = 1
    UNKNOWN = 2
    """There is no such formal here: it was cancelled, has expired, or belongs to another server."""
    DETACHED = 3
    REPLACED = 4
    """Another attachment holds the formal: a second program opened the same reader."""
    NOT_ALLOWED = 5
    """Its reader may not have its deliveries, or not any longer."""


@dataclass(frozen=True, slots=True)
class Notice:
    news: News
    formal: bytes
    generation: int = 0
    """Of the attachment it is about; of REPLACED, of the one that holds the formal now."""
    arrival_per_s: float = 0.0
    """Of ATTACHED: matches at this server, where the drop policy needs to know."""
    reason: str = ""
    """Of NOT_ALLOWED: what would be allowed."""
