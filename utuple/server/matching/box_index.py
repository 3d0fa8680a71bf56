"""The box index: which stored EFs (or CAs) an arriving batch of EAs (or CFs) meets. Pure.

Contract: `add`, `add_many`, `remove` and `renew` templates by id; `match(columns, now_us)` gives the delivery
lists of exactly the pairs whose metadata match and which are alive, and for EFs whose data match as well.
`matches` stays the oracle.

Within a family, templates for named addresses are found by dictionary; the others are boxes in segments (see
`bitmaps`). What an address or a box does not say is left to `Template.accepts` and `where_meets`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np

from utuple.model.columns import Columns
from utuple.model.condition import where_meets
from utuple.model.utuple import Family, Template, UTuple
from utuple.server.matching.boxes import FamilyRows
from utuple.server.matching.family import FamilyIndex, Lists, TemplateArrays
from utuple.server.matching.kernels import Counts, Ints, Kernels
from utuple.server.matching.matched import Matches

SEGMENT_SLOTS = 8_192
"""A segment of four dimensions is a megabyte, which a core keeps at hand, and is built anew in milliseconds."""


class BoxIndex:
    def __init__(self, kernels: Kernels | None = None, segment_slots: int = SEGMENT_SLOTS) -> None:
        self._kernels = kernels or Kernels()
        self._segment_slots = segment_slots
        self._arrays = TemplateArrays()
        self._families: dict[Family, FamilyIndex] = {}

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._arrays.number_of

    @property
    def size_bytes(self) -> int:
        """Of boxes and bitmaps."""
        return sum(index.size_bytes for index in self._families.values())

    def add(self, utuple: UTuple, expires_us: int) -> None:
        self.add_many([(utuple, expires_us)])

    def add_many(self, templates: Iterable[tuple[UTuple, int]]) -> None:
        """Each with the instant it expires."""
        new = {utuple.id: (utuple, expires_us) for utuple, expires_us in templates}
        for id_ in new.keys() & self._arrays.number_of.keys():
            self.remove(id_)
        utuples = [utuple for utuple, _ in new.values()]
        numbers = self._arrays.enter(utuples, [expires_us for _, expires_us in new.values()])
        for family, some in groupby(zip(numbers, utuples, strict=True), _family_of):
            index = self._families.get(family)
            if index is None:
                index = FamilyIndex(self._arrays, self._kernels, self._segment_slots)
                self._families[family] = index
            index.add_many(some)

    def remove(self, id_: bytes) -> None:
        number = self._arrays.number_of.get(id_)
        if number is None:
            return
        utuple = self._arrays.utuple(number)
        index = self._families[utuple.family]
        index.remove(number, utuple)
        self._arrays.leave(number)
        if not len(index):
            del self._families[utuple.family]

    def renew(self, id_: bytes, expires_us: int) -> None:
        number = self._arrays.number_of.get(id_)
        if number is not None:
            self._arrays.renew(number, expires_us)

    def match(self, columns: Columns, now_us: int) -> Matches:
        lists: list[Lists] = []
        for index, rows in self._concerned(columns):
            for numbers, counts, at in index.match(rows):
                found = self._verified(rows, numbers, counts, at, now_us)
                lists.append((found[0], found[1], rows.of(found[2])))
        return self._joined(lists)

    def _concerned(self, columns: Columns) -> Iterator[tuple[FamilyIndex, FamilyRows]]:
        """Families of the batch that have templates, each with its rows."""
        of = [self._families.get(family) for family in columns.families]
        if len(of) == 1:
            if of[0] is not None and len(columns):
                yield of[0], FamilyRows(columns, np.arange(len(columns)))
            return
        if not any(index is not None for index in of):
            return
        family = np.frombuffer(columns.family, dtype=np.uint32)
        order = np.argsort(family, kind="stable")
        ends = np.cumsum(np.bincount(family, minlength=len(of)))
        for number, index in enumerate(of):
            rows = order[(ends[number - 1] if number else 0) : ends[number]]
            if index is not None and len(rows):
                yield index, FamilyRows(columns, rows)

    def _verified(
        self, rows: FamilyRows, numbers: Ints, counts: Counts, at: Ints, now_us: int
    ) -> Lists:
        """Without the expired, and without what templates refuse that must still be asked."""
        arrays = self._arrays
        dead = arrays.dead(numbers, now_us)
        asking = arrays.asking(numbers)
        if dead is None and not np.count_nonzero(asking):
            return numbers, counts, at
        out = np.zeros(len(at), dtype=np.bool_)
        ends = np.cumsum(counts)
        if dead is not None:
            out |= np.repeat(dead, counts)
            asking = asking & ~dead
        for group in np.flatnonzero(asking).tolist():
            utuple = arrays.utuple(int(numbers[group]))
            for place in range(ends[group] - counts[group], ends[group]):
                out[place] = not _accepts(utuple, rows, int(at[place]))
        groups = np.repeat(np.arange(len(counts)), counts)
        counts = np.bincount(groups[~out], minlength=len(counts))
        return numbers[counts > 0], counts[counts > 0], at[~out]

    def _joined(self, lists: list[Lists]) -> Matches:
        ids: list[bytes] = []
        starts, rows = array("q", [0]), array("i")
        for numbers, counts, at in lists:
            ids += self._arrays.ids_of(numbers)
            starts.frombytes((counts.cumsum() + len(rows)).tobytes())
            rows.frombytes(at.tobytes())
        return Matches(ids, starts, rows)


_ANYTHING = Template()


def _family_of(entered: tuple[int, UTuple]) -> Family:
    return entered[1].family


def _accepts(utuple: UTuple, rows: FamilyRows, at: int) -> bool:
    assert isinstance(utuple.metadata, Template)
    if utuple.metadata != _ANYTHING and not utuple.metadata.accepts(rows.exact(at)):
        return False
    return not utuple.where or where_meets(utuple.where, rows.data()[at])
