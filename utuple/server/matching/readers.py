"""Named readers, and the EF by which each reads a family. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from utuple.model.identity import is_named
from utuple.model.packed import Packed
from utuple.model.utuple import Family, Kind


class NamedReaders:
    def __init__(self) -> None:
        self._reading: dict[tuple[str, Family], bytes] = {}

    def note(self, halves: Iterable[Packed]) -> None:
        """Those of them that are of a reader with a name; the first of a name stays."""
        for half in halves:
            if is_named(half.id) and half.kind is Kind.EF:
                self._reading.setdefault((half.reader, half.family), half.id)

    def strike(self, half: Packed) -> None:
        if self._reading.get((half.reader, half.family)) == half.id:
            del self._reading[half.reader, half.family]

    def reading(self, half: Packed) -> bytes | None:
        """By what the reader of this one reads its family already."""
        if not is_named(half.id) or half.kind is not Kind.EF:
            return None
        return self._reading.get((half.reader, half.family))
