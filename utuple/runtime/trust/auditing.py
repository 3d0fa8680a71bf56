"""A program's audit: what was decided here, appended to a file as a chain (`utuple.security.audit`).

What was refused is counted by who, what and why, and written now and then: whoever is refused a thousand times a second costs a
line a minute.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.security.audit import Broken, Entry, Head, verified

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
        self._refused: Counter[tuple[str, str, str]] = Counter()
        self.head = Head()
        if path is not None and path.exists():
            self._go_on(path)

    def _go_on(self, path: Path) -> None:
        """A chain that does not hold is set aside, which the next one says first: a program serves all the same."""
        try:
            with path.open("rb") as file:
                self.head = verified(file)
        except Broken as error:
            aside = path.with_name(f"{path.name}.broken-{now_us()}")
            path.rename(aside)
            _log.error("audit does not hold", file=aside.name, reason=error)
            self.note("", "broken", {"file": aside.name, "why": str(error)})

    def note(self, who: str, what: str, about: Mapping[str, Any]) -> Entry:
        """Durable when this returns."""
        entry = self.head.next(now_us(), who, what, about)
        line = entry.line()
        if self._path is not None:
            with os.fdopen(
                os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb"
            ) as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        else:
            self._lines.append(line)
        self.head = self.head.after(entry)
        return entry

    def refused(self, who: str, call: str, cause: str) -> None:
        kind = (who, call, cause)
        if kind not in self._refused and len(self._refused) >= _KINDS_MAX:
            kind = _OTHERS
        self._refused[kind] += 1

    def flush(self) -> None:
        """What was refused since the last time, as one entry for each who."""
        counted, self._refused = self._refused, Counter()
        by_who: dict[str, dict[str, int]] = {}
        for (who, call, cause), count in sorted(counted.items()):
            by_who.setdefault(who, {})[f"{call}: {cause}"] = count
        for who, counts in by_who.items():
            self.note(who, "refused", counts)

    def after(self, number: int) -> list[bytes]:
        """The next entries, some at once."""
        if self._path is None or not self._path.exists():
            return self._lines[number : number + _AT_ONCE]
        with self._path.open("rb") as file:
            return list(islice(file, number, number + _AT_ONCE))
