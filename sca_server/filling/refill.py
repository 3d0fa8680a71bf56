"""Which uTupleServers have been read since this sCA server started, and so which keys it may serve.

A key may be served once every member of its line has been read: what they hold from before our start is
then known here, and what came since was registered here as well. Nothing read is lost when a server goes
away later. The one trap is a move under our eyes: X's CFs go to Y after we read Y and before we read X.
So a read of X counts only if X, before and after it, said itself that it serves the lines the table
gives it; and when a line loses a member we had not read, or a member has not yet heard that it did, the
others are read again.

When devices become ours because another sCA server has left or died, all is read once more: CFs of others are not kept. What was
ours before is served meanwhile by what was read then (`Refills`). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.table import Table

THE_TABLE = "the assignment table"


@dataclass(slots=True)
class _Try:
    failures: int = 0
    next_s: float = 0.0
    reading: bool = False
    counts: bool = True


class Refill:
    def __init__(self, *, first_retry_s: float, longest_retry_s: float) -> None:
        self._first_retry_s = first_retry_s
        self._longest_retry_s = longest_retry_s
        self._table = Table()
        self._servers: dict[str, ServerInfo] = {}
        self._tries: dict[str, _Try] = {}
        self._read: set[str] = set()
        self.is_complete = False

    def hear(self, lines: Iterable[Line], servers: Iterable[ServerInfo] = ()) -> None:
        for server in servers:
            known = self._servers.get(server.name)
            if server.role == "server" and (known is None or known.since_us <= server.since_us):
                self._servers[server.name] = server
        for line in lines:
            under = [old for old in self._table.overlapping(line.section) if old.epoch < line.epoch]
            if self._table.hear(line) and self._lost_unread(under, line):
                self._read_again(_names(line))
        self._look()

    def _lost_unread(self, under: Iterable[Line], line: Line) -> bool:
        return any(_may_have_left(old, line) - self._read for old in under)

    def _read_again(self, names: set[str]) -> None:
        self._read -= names
        for name in names & self._tries.keys():
            self._tries[name].counts = False

    # --- reading ----------------------------------------------------------------------------------------

    def due(self, now_s: float) -> list[ServerInfo]:
        """Servers to read now."""
        found = []
        for name, server in self._servers.items():
            attempt = self._tries.get(name)
            waits = attempt is not None and (attempt.reading or attempt.next_s > now_s)
            if name not in self._read and not waits:
                found.append(server)
        return found

    def begin(self, name: str) -> None:
        attempt = self._tries.setdefault(name, _Try())
        attempt.reading = attempt.counts = True

    def end(self, name: str, before: Sequence[Line], after: Sequence[Line], now_s: float) -> bool:
        """Read to its end; `before` and `after` are its own lines as it told them around that. Whether
        it counts: if not, it is read again."""
        self.hear([*before, *after])
        served = self._serves(name, before) and self._serves(name, after)
        if not self._tries[name].counts or not served or self._lags(name, before):
            self.failed(name, now_s)
            return False
        self._read.add(name)
        del self._tries[name]
        self._look()
        return True

    def _serves(self, name: str, own: Iterable[Line]) -> bool:
        """Does it say itself that it serves whatever the table gives it?"""
        said = Table(line for line in own if name in _names(line))
        return not any(said.holes(line.section) for line in self._table if name in _names(line))

    def _lags(self, name: str, own: Iterable[Line]) -> bool:
        """Had it, when the read began, not heard yet that a server we have not read left its line?"""
        for line in own:
            for newer in self._table.overlapping(line.section):
                if newer.epoch > line.epoch and _may_have_left(line, newer) - self._read - {name}:
                    return True
        return False

    def failed(self, name: str, now_s: float) -> None:
        attempt = self._tries[name]
        wait_s = self._first_retry_s * 2.0 ** min(attempt.failures, 30)
        attempt.next_s = now_s + min(wait_s, self._longest_retry_s)
        attempt.failures += 1
        attempt.reading = False

    # --- serving ----------------------------------------------------------------------------------------

    def waits_for(self, key: int) -> str | None:
        """The server, or the table, this key waits for; None: it may be served."""
        line = self._table.line_of(key)
        if line is None:
            return THE_TABLE
        return next((m.name for m in line.members if m.name not in self._read), None)

    def afresh(self) -> Refill:
        """The same table and servers, and nothing read."""
        other = Refill(first_retry_s=self._first_retry_s, longest_retry_s=self._longest_retry_s)
        other.hear(self._table, self._servers.values())
        return other

    @property
    def waiting_for(self) -> list[str]:
        members = {name for line in self._table for name in _names(line)}
        return [*([] if self._table.is_whole else [THE_TABLE]), *sorted(members - self._read)]

    def _look(self) -> None:
        self.is_complete = not self.waiting_for


class Refills:
    """What was read for the devices that are steady, and what is being read for those that became ours since."""

    def __init__(self, first: Refill) -> None:
        self.steady = first
        self.reading = first
        """The same, unless something is being read anew."""

    def hear(self, lines: Sequence[Line], servers: Sequence[ServerInfo] = ()) -> None:
        for refill in {id(one): one for one in (self.steady, self.reading)}.values():
            refill.hear(lines, servers)

    def again(self) -> None:
        self.reading = self.reading.afresh()

    def settle(self) -> None:
        self.steady = self.reading

    def nothing_gained(self) -> None:
        """What had become ours is another's again before it was read: from here on, what was read before is kept up to date."""
        self.reading = self.steady


def _names(line: Line) -> set[str]:
    return {member.name for member in line.members}


def _may_have_left(old: Line, new: Line) -> set[str]:
    """Where epochs lie between that we have not seen, a server may have left and come back."""
    return _names(old) - _names(new) if new.epoch == old.epoch + 1 else _names(old)
