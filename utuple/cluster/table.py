"""The table: lines found by key, the newest epoch winning wherever sections overlap.

It serves as a server's own lines, an assignment manager's directory and a client's cache. It never
guesses: a key without a line has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sortedcontainers import SortedDict

from utuple.cluster.line import Line
from utuple.model.section import Section, tiles


class Table:
    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self._lines: SortedDict[int, Line] = SortedDict()
        for line in lines:
            self.hear(line)

    def __iter__(self) -> Iterator[Line]:
        return iter(list(self._lines.values()))

    def __len__(self) -> int:
        return len(self._lines)

    def line_of(self, key: int) -> Line | None:
        at = self._lines.bisect_right(key) - 1
        if at < 0:
            return None
        line: Line = self._lines.peekitem(at)[1]
        return line if key in line.section else None

    def overlapping(self, section: Section) -> list[Line]:
        at = max(self._lines.bisect_right(section.start) - 1, 0)
        found = []
        for start in self._lines.islice(at):
            if start >= section.end:
                break
            line = self._lines[start]
            if line.section.overlaps(section):
                found.append(line)
        return found

    def hear(self, line: Line) -> bool:
        """Take a line if it is news. Older lines under it are cut, so what a split left over stays."""
        under = self.overlapping(line.section)
        if any(known.epoch >= line.epoch for known in under):
            return False
        for known in under:
            del self._lines[known.section.start]
            for rest in known.section.without(line.section):
                self._lines[rest.start] = replace(known, section=rest)
        self._lines[line.section.start] = line
        return True

    def forget(self, key: int) -> None:
        line = self.line_of(key)
        if line is not None:
            del self._lines[line.section.start]

    @property
    def is_whole(self) -> bool:
        return tiles(line.section for line in self)
