"""The template index: which stored EFs (or CAs) an arriving batch of EAs (or CFs) meets. Pure.

Contract: `add`, `add_many`, `remove` and `renew` templates by id; `match(columns, now_us)` gives the delivery
lists of exactly the pairs whose metadata match and which are alive, and for EFs whose data match as well.
`matches` stays the oracle.

Within a family, templates for named addresses are found by dictionary; the others by bitmaps: every
dimension is cut into buckets, each bucket has one bit per template that could accept a value in it, and
the bitmaps of a row's buckets are ANDed. What is left is verified, by columns where the condition is a
plain comparison, by `Template.accepts` and `where_meets` where it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from utuple.model.columns import Columns
from utuple.model.condition import Equal, OneOf, where_meets
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.model.value import Value, decode_data
from utuple.server.bitmaps import Bitmaps
from utuple.server.matched import Matches, matches_of

_MAX_NAMED = 64
"""A template for more addresses than this goes to the bitmaps: its dictionary entries would not pay."""


@dataclass(slots=True)
class _Entry:
    utuple: UTuple
    template: Template
    expires_us: int


class TemplateIndex:
    def __init__(self) -> None:
        self._families: dict[Family, _FamilyIndex] = {}
        self._family_of: dict[bytes, Family] = {}

    def __len__(self) -> int:
        return len(self._family_of)

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._family_of

    def add(self, utuple: UTuple, expires_us: int) -> None:
        self.remove(utuple.id)
        self._family_of[utuple.id] = utuple.family
        index = self._families.get(utuple.family)
        if index is None:
            index = self._families[utuple.family] = _FamilyIndex()
        index.add(utuple, expires_us)

    def add_many(self, templates: Iterable[tuple[UTuple, int]]) -> None:
        """Each with the instant it expires."""
        for utuple, expires_us in templates:
            self.add(utuple, expires_us)

    def remove(self, id_: bytes) -> None:
        family = self._family_of.pop(id_, None)
        if family is None:
            return
        index = self._families[family]
        index.remove(id_)
        if not len(index):
            del self._families[family]

    def renew(self, id_: bytes, expires_us: int) -> None:
        family = self._family_of.get(id_)
        if family is not None:
            self._families[family].entries[id_].expires_us = expires_us

    def match(self, columns: Columns, now_us: int) -> Matches:
        found: list[tuple[int, bytes]] = []
        for number, family in enumerate(columns.families):
            index = self._families.get(family)
            if index is None:
                continue
            rows = _rows_of(columns, number)
            if len(rows):
                found.extend(index.match(columns, rows, now_us))
        return matches_of(found)


class _FamilyIndex:
    """The templates of one family."""

    def __init__(self) -> None:
        self.entries: dict[bytes, _Entry] = {}
        self._named: dict[str, dict[bytes, _Entry]] = {}
        self._bitmaps = Bitmaps()

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, utuple: UTuple, expires_us: int) -> None:
        assert isinstance(utuple.metadata, Template)
        entry = _Entry(utuple, utuple.metadata, expires_us)
        self.entries[utuple.id] = entry
        names = _addresses(entry.template)
        if names is None:
            self._bitmaps.add(utuple.id, entry.template, utuple.where or {})
        else:
            for name in names:
                self._named.setdefault(name, {})[utuple.id] = entry

    def remove(self, id_: bytes) -> None:
        entry = self.entries.pop(id_)
        names = _addresses(entry.template)
        if names is None:
            self._bitmaps.remove(id_)
            return
        for name in names:
            del self._named[name][id_]
            if not self._named[name]:
                del self._named[name]

    def match(
        self, columns: Columns, rows: NDArray[np.intp], now_us: int
    ) -> Iterator[tuple[int, bytes]]:
        if self._named:
            yield from self._match_named(columns, rows, now_us)
        if not len(self._bitmaps):
            return
        lazy = _Rows(columns)
        for row, ids, exact in self._bitmaps.candidates(columns, rows, lazy.data):
            for id_ in ids:
                entry = self.entries[id_]
                if entry.expires_us > now_us and (exact or _verified(entry, lazy, row)):
                    yield row, id_

    def _match_named(
        self, columns: Columns, rows: NDArray[np.intp], now_us: int
    ) -> Iterator[tuple[int, bytes]]:
        lazy = _Rows(columns)
        addresses = columns.addresses
        for row in rows.tolist():
            wanted = self._named.get(addresses[row])
            if wanted is None:
                continue
            for id_, entry in wanted.items():
                if entry.expires_us > now_us and _verified(entry, lazy, row):
                    yield row, id_


class _Rows:
    """The rows of a batch as `matches` sees them, each made when a template first asks for it."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._data: dict[int, dict[str, Value]] = {}
        self._exact: dict[int, Exact] = {}

    def data(self, row: int) -> dict[str, Value]:
        data = self._data.get(row)
        if data is None:
            data = self._data[row] = decode_data(self._columns.payloads[row])
        return data

    def exact(self, row: int) -> Exact:
        exact = self._exact.get(row)
        if exact is None:
            columns = self._columns
            exact = Exact(columns.addresses[row], columns.times_us[row], columns.position_at(row))
            self._exact[row] = exact
        return exact


def _verified(entry: _Entry, rows: _Rows, row: int) -> bool:
    if not entry.template.accepts(rows.exact(row)):
        return False
    where = entry.utuple.where
    return not where or where_meets(where, rows.data(row))


def _addresses(template: Template) -> tuple[str, ...] | None:
    """The addresses a template names one by one, if few; None if it must be searched for."""
    match template.address:
        case Equal(value):
            return (value,)
        case OneOf(values) if len(values) <= _MAX_NAMED:
            return tuple(dict.fromkeys(values))
        case _:
            return None


def _rows_of(columns: Columns, number: int) -> NDArray[np.intp]:
    if len(columns.families) == 1:
        return np.arange(len(columns))
    family = np.frombuffer(columns.family, dtype=np.uint32)
    return np.flatnonzero(family == number)
