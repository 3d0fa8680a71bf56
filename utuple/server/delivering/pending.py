"""Live matches that wait for the end of a search. Pure."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from utuple.store.contract import Batch

ROW_BYTES = 200
"""What a row takes in memory beside its payload, roughly."""


@dataclass(slots=True)
class Pending:
    """Of one cursor."""

    parts: list[tuple[Batch, array[int]]] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0

    def add(self, batch: Batch, rows: array[int]) -> int:
        """Returns the bytes they take."""
        if 2 * len(rows) < len(batch):  # the rest of it must not stay for a few
            batch, rows = batch.take(rows), array("q", range(len(rows)))
        payloads = batch.columns.payloads
        size_bytes = sum(len(payloads[row]) + ROW_BYTES for row in rows)
        self.parts.append((batch, rows))
        self.rows += len(rows)
        self.size_bytes += size_bytes
        return size_bytes


class AllPending:
    """Of all cursors together, within limits."""

    def __init__(self, most_bytes: int, most_bytes_in_all: int) -> None:
        self._most_bytes, self._most_bytes_in_all = most_bytes, most_bytes_in_all
        self._size_bytes = 0

    def add(self, pending: Pending, batch: Batch, rows: array[int], most_rows: int) -> bool:
        """False: it has become too much."""
        self._size_bytes += pending.add(batch, rows)
        return (
            pending.rows <= most_rows
            and pending.size_bytes <= self._most_bytes
            and self._size_bytes <= self._most_bytes_in_all
        )

    def dropped(self, pending: Pending) -> None:
        self._size_bytes -= pending.size_bytes
