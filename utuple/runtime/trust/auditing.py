"""A program's audit: what was decided here, appended to a file as a chain (`utuple.security.audit`).

What was refused is counted by who, what and why, and written now and then: whoever is refused a thousand times a second costs a
line a minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.security.audit import Broken, Entry, Head, verified
from utuple.security.chain_file import append, cut_rest, whole_lines

_log = Log("utuple.runtime.trust.auditing")

COUNTED_S = 60.0
"""Refusals are counted for so long before they are written."""
_KINDS_MAX = 1_000
"""Of refusals, counted apart; those beyond are counted together."""
_OTHERS = ("", "others", "others")
_AT_ONCE = 1_000


class Auditor:
    """Without a file it keeps its entries in memory: for tests."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lines: list[bytes] = []
        """That are in no file: all, or those that wait for room on the disk."""
        self._is_full = False
        self._refused: Counter[tuple[str, str, str]] = Counter()
        self.head = Head()
        if path is not None and path.exists():
            self._go_on(path)

    def _go_on(self, path: Path) -> None:
        """A chain that does not hold is set aside, which the next one says first: a program serves all the same. What a crash left of
        a line is cut off."""
        try:
            if cut := cut_rest(path):
                _log.warning("audit ended within a line", file=path.name, bytes=cut)
            with path.open("rb") as file:
                self.head = verified(file)
        except Broken as error:
            aside = path.with_name(f"{path.name}.broken-{now_us()}")
            path.rename(aside)
            _log.error("audit does not hold", file=aside.name, reason=error)
            self.note("", "broken", {"file": aside.name, "why": str(error)})

    def note(self, who: str, what: str, about: Mapping[str, Any]) -> Entry:
        """Durable when this returns; where the disk takes nothing, as soon as it does again."""
        entry = self.head.next(now_us(), who, what, about)
        self._lines.append(entry.line())
        self.head = self.head.after(entry)
        self._write()
        return entry

    def _write(self) -> bool:
        if self._path is None or not self._lines:
            return True
        try:
            append(self._path, b"".join(self._lines))
        except OSError as error:
            if not self._is_full:
                _log.error("audit cannot be written", file=self._path.name, reason=error)
            self._is_full = True
            return False
        self._lines.clear()
        self._is_full = False
        return True

    def refused(self, who: str, call: str, cause: str) -> None:
        kind = (who, call, cause)
        if kind not in self._refused and len(self._refused) >= _KINDS_MAX:
            kind = _OTHERS
        self._refused[kind] += 1

    def flush(self) -> None:
        """What was refused since the last time, as one entry for each who. While nothing can be written it is counted on."""
        if not self._write():
            return
        counted, self._refused = self._refused, Counter()
        by_who: dict[str, dict[str, int]] = {}
        for (who, call, cause), count in sorted(counted.items()):
            by_who.setdefault(who, {})[f"{call}: {cause}"] = count
        for who, counts in by_who.items():
            self.note(who, "refused", counts)

    def after(self, number: int) -> list[bytes]:
        """The next entries, some at once."""
        written = whole_lines(self._path) if self._path is not None and self._path.exists() else []
        return [*written, *self._lines][number : number + _AT_ONCE]
