"""What lines, as servers held them one after the other, say about epochs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from utuple.cluster.line import Line, Member
from utuple.cluster.table import Table
from utuple.model.section import Section

_MICROSECONDS = 1_000_000

Seen = Iterable[tuple[int, str, Line]]
"""When who held which line, in the order of time for each server."""


def split_epochs(seen: Seen) -> list[str]:
    """Lines of one epoch that overlap have the same members, whoever holds them, however they are cut."""
    contents: dict[int, dict[tuple[Section, tuple[Member, ...]], str]] = {}
    for _, server, line in seen:
        contents.setdefault(line.epoch, {}).setdefault((line.section, line.members), server)
    found = []
    for epoch, held in sorted(contents.items()):
        rows = sorted(held.items(), key=lambda row: row[0][0])
        for at, ((section, members), server) in enumerate(rows):
            for (other, others), holder in islice(rows, at + 1, None):
                if other.start >= section.end:
                    break  # and so do all that follow
                if members != others:
                    one, two = Line(section, epoch, members), Line(other, epoch, others)
                    found.append(f"{server} has {one}, but {holder} has {two}")
    return found


def epochs_back(seen: Seen) -> list[tuple[str, str]]:
    """Servers whose own epoch of a key went back."""
    tables: dict[str, Table] = {}
    found = []
    for at_us, server, line in seen:
        table = tables.setdefault(server, Table())
        if newer := [one for one in table.overlapping(line.section) if one.epoch > line.epoch]:
            at_s = at_us / _MICROSECONDS
            found.append((server, f"has {line} at {at_s:.3f}, after {newer[0]}"))
        table.hear(line)
    return found
