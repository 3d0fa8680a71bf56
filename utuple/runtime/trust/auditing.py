"""A program's audit: what was decided here, appended to a file as a chain (`utuple.security.audit`).

What was refused is counted by who, what and why, and written now and then: whoever is refused a thousand times a second costs a
line a minute.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from utuple.runtime.clock import now_us
from utuple.security.audit import Entry, verified

COUNTED_S = 60.0
"""Refusals are counted for so long before they are written."""
_KINDS_MAX = 1_000
"""Of refusals, counted apart; those beyond are counted together."""
_OTHERS = ("", "others", "others")
_AT_ONCE = 1_000


class Auditor:
    """Without a file it keeps nothing but the last entries: for tests and programs that are not secured."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lines: list[bytes] = []
        self._refused: Counter[tuple[str, str, str]] = Counter()
        if path is not None and path.exists():
            self._lines = path.read_bytes().splitlines(keepends=True)
        self.head = verified(self._lines)

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
        return self._lines[number : number + _AT_ONCE]
