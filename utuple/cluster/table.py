"""The table: lines found by key, the newest epoch winning wherever sections overlap.

It serves as a server's own lines, an assignment manager's directory and a client's cache. It never
guesses: a key without a line has none.
"""

from __future__ import annotations

from utuple.cluster.line import Line
from utuple.cluster.newest import Newest
from utuple.model.section import tiles


class Table(Newest[Line]):
    """`hear(line)` takes a line where it is news. Older lines under it are cut, so what a split left
    over stays."""

    def line_of(self, key: int) -> Line | None:
        return self.find(key)

    def reaches(self, line: Line) -> bool:
        """Is this line known, or a later one, for each of its keys? A later line of half a section says nothing of the
        other half."""
        key = line.section.start
        while key < line.section.end:
            own = self.find(key)
            if own is None or own.epoch < line.epoch:
                return False
            key = own.section.end
        return True

    def forget(self, key: int) -> None:
        line = self.find(key)
        if line is not None:
            self.cut(line.section, line.epoch + 1)

    @property
    def is_whole(self) -> bool:
        return tiles(line.section for line in self.items)
