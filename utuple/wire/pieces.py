"""Rows in messages of a size that every program takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from utuple.model.columns import Columns
from utuple.model.portions import portions

PIECE_BYTES = 8 << 20
"""One message of rows: well below what a peer takes, whatever the payloads."""
_ROW_BYTES = 100
"""What a row needs beside its payload, roughly."""


def pieces(columns: Columns, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rows first to last of each message, so that none grows beyond what a peer takes."""
    payloads, addresses = columns.payloads, columns.addresses
    most_bytes = len(rows) * _ROW_BYTES + sum(map(len, addresses)) + sum(map(len, payloads))
    if most_bytes <= PIECE_BYTES:  # the usual case: one message, whichever rows they are
        return iter([(0, len(rows))] if rows else [])
    sizes = (len(payloads[row]) + len(addresses[row]) + _ROW_BYTES for row in rows)
    return portions(sizes, PIECE_BYTES, len(rows))
