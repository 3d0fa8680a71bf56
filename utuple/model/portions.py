"""Portions: what is cut so that no message, and no turn of an event loop, grows beyond a limit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def portions(sizes: Iterable[int], most_bytes: int, most: int) -> Iterator[tuple[int, int]]:
    """Half-open ranges that follow one another and hold everything: at most so many things, and so many bytes unless it
    is one thing alone that is larger."""
    first = at = size_bytes = 0
    for at, size in enumerate(sizes, 1):
        size_bytes += size
        if at - 1 > first and (size_bytes > most_bytes or at - first > most):
            yield first, at - 1
            first, size_bytes = at - 1, size
    if first < at:
        yield first, at
