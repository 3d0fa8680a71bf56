"""The book: every EF and CA a server keeps, and which of them an arriving batch meets. Pure.

Those that ask for one address only are in `plain`, the others in the index.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from utuple.model.columns import NEVER_US, Columns
from utuple.model.packed import Packed
from utuple.model.utuple import Family, Kind
from utuple.server.matching.box_index import BoxIndex
from utuple.server.matching.by_address import Plain, plain_address
from utuple.server.matching.kernels import Kernels
from utuple.server.matching.matched import Matches, matches_of_lists
from utuple.server.writing.expiries import Expiries
from utuple.store.contract import StoredTemplate

MOST_DROPPED = 5_000
"""Dead templates dropped at once: some milliseconds' work. They match nothing meanwhile."""


@dataclass(slots=True)
class _Shelf:
    """Of one kind."""

    others: BoxIndex
    plain: Plain

    def __len__(self) -> int:
        return len(self.plain) + len(self.others)


class TemplateIndex:
    def __init__(
        self, given: Iterable[StoredTemplate] = (), kernels: Kernels | None = None
    ) -> None:
        self.templates: dict[bytes, StoredTemplate] = {}
        self.count_by_family: Counter[Family] = Counter()
        loops = kernels or Kernels()
        self._shelves = {kind: _Shelf(BoxIndex(loops), Plain(loops)) for kind in (Kind.EF, Kind.CA)}
        self._expiries = Expiries()
        self._matched_us = 0
        """When EAs were last looked at, by the server's clock."""
        self.add_all(given)

    def count(self, kind: Kind) -> int:
        return len(self._shelves[kind])

    def add_all(self, given: Iterable[StoredTemplate]) -> None:
        """Of one that is held, only the expiry may differ."""
        new: dict[bytes, StoredTemplate] = {}
        for stored in given:
            id_ = stored[0][0]
            if id_ in self.templates:
                self.renew(id_, stored.expires_us)
            else:
                new[id_] = stored
        self.templates.update(new)
        self._expiries.note_all({id_: stored[2] for id_, stored in new.items()})
        for family, kind, halves in _runs(new.values()):
            self.count_by_family[family] += len(halves)
            shelf = self._shelves[kind]
            others = shelf.plain.add_all(family, halves)
            if others:
                expiring = [(half.utuple, new[half.id].expires_us) for half in others]
                shelf.others.add_many(expiring)

    def renew(self, id_: bytes, expires_us: int) -> None:
        stored = self.templates.get(id_)
        if stored is not None and stored.expires_us != expires_us:
            self._expiries.strike(id_, stored.expires_us)
            self._expiries.note(id_, expires_us)
            self.templates[id_] = stored._replace(expires_us=expires_us)
            self._shelves[stored.packed.kind].others.renew(id_, expires_us)

    def pin(self, id_: bytes) -> bool:
        """Its reader is here: from now on it never expires. False if it was over when EAs were last looked at, and
        only not dropped yet: these passed it by."""
        was_alive = self.templates[id_].expires_us > self._matched_us
        self.renew(id_, NEVER_US)
        return was_alive

    def remove(self, id_: bytes) -> None:
        stored = self.templates.pop(id_, None)
        if stored is None:
            return
        half = stored.packed
        self._expiries.strike(id_, stored.expires_us)
        shelf, address = self._shelves[half.kind], plain_address(half)
        if address is not None:
            shelf.plain.remove(id_, half.family, address)
        else:
            shelf.others.remove(id_)
        self.count_by_family[half.family] -= 1
        if not self.count_by_family[half.family]:
            del self.count_by_family[half.family]

    def match(self, kind: Kind, columns: Columns, now_us: int) -> Matches:
        """Of this kind, those that are alive; a CF's own data template is not asked."""
        shelf, held = self._shelves[kind], self.templates
        if kind is Kind.EF:
            self._matched_us = now_us
        found = shelf.others.match(columns, now_us)
        if not len(shelf.plain):
            return found
        plain = _joined(shelf.plain.match(columns))
        if self._expiries.is_any_due(now_us):
            living = [(id_, rows) for id_, rows in plain if held[id_].expires_us > now_us]
            if len(living) < len(plain.ids):
                plain = matches_of_lists(dict(living))
        return _joined((plain, found))

    def drop_expired(self, now_us: int) -> list[bytes]:
        """Templates whose lifetime is over leave memory; the store forgets them by itself."""
        dead = self._expiries.expired(now_us, MOST_DROPPED)
        for id_ in dead:
            self.remove(id_)
        return dead


def _runs(given: Iterable[StoredTemplate]) -> Iterator[tuple[Family, Kind, list[Packed]]]:
    """Those of one family and kind together, as far as they came together: mostly all did."""
    alike: list[Packed] = []
    family, kind = None, None
    for stored in given:
        half = stored[0]
        if half[1] is not family or half[2] is not kind:
            if family is not None and kind is not None:
                yield family, kind, alike
            alike = []
            family, kind = half[1], half[2]
        alike.append(half)
    if family is not None and kind is not None:
        yield family, kind, alike


def _joined(given: Iterable[Matches]) -> Matches:
    """No template is in two of them."""
    parts = [part for part in given if part]
    if len(parts) <= 1:
        return parts[0] if parts else Matches()
    ids: list[bytes] = []
    starts, rows = array("q", [0]), array("q")
    for part in parts:
        ids += part.ids
        starts.extend([len(rows) + start for start in part.starts[1:]])
        rows.extend(array("q", part.rows))
    return Matches(ids, starts, rows)
