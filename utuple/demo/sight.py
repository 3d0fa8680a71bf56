"""The line of one key as it changes: looked at again and again, and every change told."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from utuple.admin.moves import ShownMove, sentence
from utuple.admin.snapshot import Snapshot, line_said
from utuple.admin.watching import looks
from utuple.cluster.line import Line
from utuple.demo.showing import Shown
from utuple.errors import Unavailable
from utuple.model.key import key_of
from utuple.model.utuple import Family

_GIVEN_UP = "over"


@dataclass(frozen=True, slots=True)
class Seen:
    """One look."""

    at_s: float
    lines: Sequence[Line]
    line: Line
    """The key's."""
    moves: list[ShownMove]
    """Of its section, the oldest first."""
    registered: dict[str, int]
    """By each server that answered, since it started."""
    busy: dict[str, float]
    processing: dict[str, float]
    """The load of each server as the monitor sees it."""

    @property
    def said(self) -> str:
        return line_said(self.line)


def seen_in(snapshot: Snapshot, family: Family, at_s: float) -> Seen | None:
    """None: the key's line was not to be seen."""
    key = key_of(*family)
    line = next((line for line in snapshot.lines if key in line.section), None)
    if line is None:
        return None
    ends = f"{line.section.start:016x}", f"{line.section.end:016x}"
    answered = [server for server in snapshot.servers if server.pid]
    watched = (server for monitor in snapshot.monitors for server in monitor.servers)
    return Seen(
        at_s,
        snapshot.lines,
        line,
        [move for move in snapshot.moves if (move.start, move.end) == ends],
        {server.name: server.registered for server in answered},
        {server.name: server.load.busy for server in answered},
        {server.name: server.processing for server in watched},
    )


class Sight:
    def __init__(self, at: Sequence[str], family: Family, shown: Shown) -> None:
        self._at = at
        self._family = family
        self._shown = shown
        self._epoch = 0
        self._told: set[str] = set()

    async def until(
        self, is_so: Callable[[Seen], bool], limit_s: float, check: Callable[[], None]
    ) -> tuple[Seen, bool]:
        """The first look of which this is so, or the last one within the limit. `check` raises what
        has gone wrong meanwhile."""
        seen = None
        async for snapshot in looks(self._at, limit_s):
            check()
            seen = seen_in(snapshot, self._family, time.monotonic()) or seen
            if seen is not None:
                self._tell(seen)
                if is_so(seen):
                    return seen, True
        if seen is None:
            raise Unavailable(f"no manager knows the line of {'/'.join(self._family)}")
        return seen, False

    def _tell(self, seen: Seen) -> None:
        for move in seen.moves:
            if move.id in self._told or not (move.is_made or move.step == _GIVEN_UP):
                continue
            self._told.add(move.id)
            self._shown.say(told(move))
        if seen.line.epoch != self._epoch:
            self._epoch = seen.line.epoch
            self._shown.table(rows_of(seen.lines, seen.line))


def rows_of(lines: Sequence[Line], hot: Line) -> list[str]:
    """The table as figure 3 draws it, the hot key's line marked; three servers fit a terminal of 80 columns."""
    rows = []
    for line in lines:
        section, epoch, servers = line_said(line).split("  ")
        mark = "→" if line == hot else " "
        rows.append(f"{mark} {section}  {epoch.removeprefix('epoch '):>2}  {servers}")
    return rows


def told(move: ShownMove) -> str:
    """A move that has ended, in a sentence."""
    if move.step == _GIVEN_UP:
        return f"given up: {sentence(move)}: {move.reason}"
    return f"{sentence(move)}: {move.why}; took {move.seconds:.2f} s"
