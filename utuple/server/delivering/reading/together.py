"""One search of the store for many EFs of one family and one stream: everything of the family is read once, and each EF is given
what it matches by an index made for them. Pure.

A stream that was full leaves all its EFs behind at once. A search for each of a thousand would have PostgreSQL look at the same rows a
thousand times."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from utuple.model.columns import NEVER_US
from utuple.model.utuple import Family, Kind, Template, UTuple
from utuple.server.delivering.cursor import Reading
from utuple.server.matching.index import TemplateIndex
from utuple.store.contract import Batch, Search, StoredTemplate

NOBODY = bytes(16)


def near(readings: Sequence[Reading], rows_each: int) -> list[Reading]:
    """Those that lack so little that they are worth reading together: at most so many rows for each of them. Who lacks more may
    ask for few of many rows, and an index of PostgreSQL may find these at once."""
    most = rows_each * len(readings)
    return [reading for reading in readings if reading.upto - reading.after <= most]


class Together:
    def __init__(self, readings: Sequence[Reading], templates: Sequence[StoredTemplate]) -> None:
        """All of one family. What each lacks came after it, and has met it."""
        self._family: Family = templates[0].packed.family
        self._after = min(reading.after for reading in readings)
        self._upto = readings[0].upto
        self._index = TemplateIndex(one._replace(expires_us=NEVER_US) for one in templates)

    def search(self, since_us: int) -> Search:
        """Everything of the family that lived then."""
        anything = UTuple(NOBODY, self._family, Template(), None, {}, 0.0)
        return Search(anything, self._after, self._upto, since_us)

    def found(self, batch: Batch, now_us: int) -> Mapping[bytes, array[int]]:
        """The rows of each EF."""
        found = self._index.match(Kind.EF, batch.columns, now_us)
        return {formal: array("q", rows) for formal, rows in found}
