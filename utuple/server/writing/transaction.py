"""What one batch gathers for its transaction. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from utuple.cluster.line import Line
from utuple.model.section import Section
from utuple.store.contract import Batch, FormalPosition, StoredTemplate


@dataclass(slots=True)
class Tally:
    events: list[Batch] = field(default_factory=list)
    devices: list[Batch] = field(default_factory=list)
    templates: list[StoredTemplate] = field(default_factory=list)
    cancelled: list[bytes] = field(default_factory=list)
    positions: list[FormalPosition] = field(default_factory=list)
    lines: list[Line] | None = None
    changed: list[Line] = field(default_factory=list)
    """Lines that are news here."""
    notes: dict[str, bytes | None] = field(default_factory=dict)
    revealed: list[bytes] = field(default_factory=list)
    dropped: list[bytes] = field(default_factory=list)
    removed: list[Section] = field(default_factory=list)
