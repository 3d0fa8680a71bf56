"""What deliveries weigh in a reader's window. Both ends count alike, so what one sends the other gives back. Pure.

Light ones are counted by rows alone, which costs nothing: ten thousand of them, a window, are five megabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LIGHT_BYTES = 512


def are_light(payloads: Sequence[bytes]) -> bool:
    return not payloads or max(map(len, payloads)) <= LIGHT_BYTES


def weight_bytes(payloads: Sequence[bytes], rows: Iterable[int]) -> int:
    """Of these rows, those that are not light."""
    sizes = (len(payloads[row]) for row in rows)
    return sum(size for size in sizes if size > LIGHT_BYTES)


def fitting(payloads: Sequence[bytes], rows: Sequence[int], left_bytes: int) -> tuple[int, int]:
    """How many of these rows, from the first on, may go, and what they weigh. One goes as long as anything is left,
    however large it is: else it would never go."""
    weight = 0
    for count, row in enumerate(rows):
        if weight >= left_bytes:
            return count, weight
        weight += weight_bytes(payloads, (row,))
    return len(rows), weight
