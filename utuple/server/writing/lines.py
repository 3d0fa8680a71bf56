"""What this server may serve: its own lines, and the judgement of R1. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.table import Table
from utuple.model.columns import Columns
from utuple.model.key import key_of
from utuple.model.section import Section
from utuple.model.utuple import Family
from utuple.server.writing.request import Answer, Part, Reason, Refusal


def judged(
    table: Table, name: str, family: Family, epoch: int, *, accumulates: bool
) -> tuple[Reason | None, Line | None]:
    """May this be registered at the server of this name? EAs and CFs ask whether it accumulates."""
    line = table.line_of(key_of(*family))
    if line is None:
        return Reason.NOT_SERVED, None
    if line.epoch != epoch:
        return Reason.STALE, line
    member = line.member(name)
    if member is None or member.suspended:
        return Reason.NOT_SERVED, line
    if accumulates and not member.accumulatable:
        return Reason.OFF, line
    return None, line


def judged_read(table: Table, name: str, family: Family, epoch: int, committed: int) -> Answer:
    """An EF that is read once changes nothing: it is judged by these durable lines, and finds what is committed."""
    reason, line = judged(table, name, family, epoch, accumulates=False)
    refused = [] if reason is None else [Refusal(Part.TEMPLATES, reason, [0])]
    told = [line] if refused and line is not None else []
    return Answer(refused, told, committed)


class OwnLines:
    """Durable lines this server is a member of. It fails closed: no line, no service (law 7)."""

    def __init__(self, name: str, lines: Iterable[Line], servers: Iterable[ServerInfo]) -> None:
        self._name = name
        self._table = Table(lines)
        self.servers = {server.name: server for server in servers}

    @property
    def all(self) -> list[Line]:
        return list(self._table)

    def judge(
        self, family: Family, epoch: int, *, accumulates: bool
    ) -> tuple[Reason | None, Line | None]:
        return judged(self._table, self._name, family, epoch, accumulates=accumulates)

    def sort(
        self, columns: Columns, epochs: Mapping[Family, int], part: Part
    ) -> tuple[Sequence[int], list[tuple[Reason, Line | None, list[int]]]]:
        """The rows of these EAs or CFs that this server may take, and the others with why not."""
        refused: list[tuple[Reason, Line | None, list[int]]] = []
        for number, family in enumerate(columns.families):
            reason, line = self.judge(family, epochs.get(family, 0), accumulates=True)
            is_cut = part is Part.EVENTS and line is not None and bool(line.layout.axes)
            if reason is None and not is_cut:
                continue
            rows = [row for row, of in enumerate(columns.family) if of == number]
            if reason is None and line is not None:
                # Outside its segments it does not keep the EFs that an EA may match (law 7).
                reason, takers = Reason.NOT_SERVED, line.layout.takers(columns, rows)
                rows = [
                    row for row, names in zip(rows, takers, strict=True) if self._name not in names
                ]
            if rows and reason is not None:
                refused.append((reason, line, rows))
        if not refused:
            return range(len(columns)), refused
        gone = {row for _, _, rows in refused for row in rows}
        return [row for row in range(len(columns)) if row not in gone], refused

    def line_of(self, key: int) -> Line | None:
        return self._table.line_of(key)

    def overlapping(self, section: Section) -> list[Line]:
        return self._table.overlapping(section)

    def hear(self, line: Line) -> bool:
        """A newer line, also one this server is not a member of: it tells those who still come."""
        return self._table.hear(line)

    def reaches(self, line: Line) -> bool:
        """Is this line known here, or a later one, for each of its keys?"""
        return self._table.reaches(line)

    def meet(self, servers: Iterable[ServerInfo]) -> None:
        """Where others are; the newest address of each."""
        for server in servers:
            known = self.servers.get(server.name)
            if known is None or server.since_us >= known.since_us:
                self.servers[server.name] = server

    def epoch_of(self, family: Family) -> int:
        """The epoch this server serves the family at; 0 if it does not."""
        line = self._table.line_of(key_of(*family))
        return line.epoch if line is not None else 0

    def adopt(self, lines: Iterable[Line], servers: Iterable[ServerInfo]) -> bool:
        """The first table, once: a server that has lines keeps them."""
        if len(self._table):
            return False
        mine = [line for line in lines if line.member(self._name) is not None]
        for line in mine:
            self._table.hear(line)
        self.meet(servers)
        return bool(mine)
