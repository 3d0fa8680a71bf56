"""How far a server may run ahead of the application at one link, in rows or in bytes. Pure.

Counted from the Attach: what came before it (`earlier`) was not in its window, and is not given back by Taken.
"""

from __future__ import annotations


class Window:
    __slots__ = ("earlier", "limit", "taken", "untaken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.untaken = 0
        self.earlier = 0
        """Of those untaken: what came before the last Attach."""
        self.taken = 0
        """And not told yet."""

    def lost(self) -> None:
        self.earlier = self.untaken

    def begin(self) -> None:
        """An Attach is being sent."""
        self.taken, self.earlier = 0, self.untaken

    def delivered(self, new: int, repeats: int, *, is_up: bool) -> None:
        self.untaken += new
        if is_up:
            self.taken += repeats
        else:
            self.earlier += new

    def took(self, count: int) -> None:
        earlier = min(count, self.earlier)
        self.untaken -= count
        self.earlier -= earlier
        self.taken += count - earlier

    def tell(self) -> int:
        taken, self.taken = self.taken, 0
        return taken

    @property
    def is_half_taken(self) -> bool:
        return self.taken * 2 >= self.limit

    @property
    def is_half_empty(self) -> bool:
        return self.untaken * 2 <= self.limit
