"""The template index: every EF and CA a server keeps, and which of them an arriving batch meets. Pure.

Those that ask for one address and nothing else are in the address index, the others in the box index. Expired templates
match nothing from the microsecond on at which they expire; they leave memory some time later (`drop_expired`).
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
from utuple.server.matching.by_address import AddressIndex, sole_address_of
from utuple.server.matching.expiries import Expiries
from utuple.server.matching.kernels import Kernels
from utuple.server.matching.matched import Matches, matches_of_lists
from utuple.server.matching.readers import NamedReaders
from utuple.store.contract import StoredTemplate

MOST_DROPPED = 5_000
"""Dead templates dropped at once: some milliseconds' work. They match nothing meanwhile."""


@dataclass(slots=True)
class _OfKind:
    """The EFs, or the CAs. No template is in both indexes."""

    by_address: AddressIndex
    by_box: BoxIndex

    def __len__(self) -> int:
        return len(self.by_address) + len(self.by_box)


class TemplateIndex:
    def __init__(
        self, given: Iterable[StoredTemplate] = (), kernels: Kernels | None = None
    ) -> None:
        self.templates: dict[bytes, StoredTemplate] = {}
        self.count_by_family: Counter[Family] = Counter()
        self.efs_by_family: Counter[Family] = Counter()
        self.readers = NamedReaders()
        loops = kernels or Kernels()
        self._of_kind = {
            kind: _OfKind(AddressIndex(loops), BoxIndex(loops)) for kind in (Kind.EF, Kind.CA)
        }
        self._expiries = Expiries()
        self._matched_us = 0
        """When EAs were last looked at, by the server's clock."""
        self.add_all(given)

    def count(self, kind: Kind) -> int:
        return len(self._of_kind[kind])

    def add_all(self, given: Iterable[StoredTemplate]) -> None:
        """Of one that is here already, only the expiry may differ."""
        new: dict[bytes, StoredTemplate] = {}
        for stored in given:
            id_ = stored.packed.id
            if id_ in self.templates:
                self.renew(id_, stored.expires_us)
            else:
                new[id_] = stored
        self.templates.update(new)
        self.readers.note(stored.packed for stored in new.values())
        self._expiries.note_all({id_: stored.expires_us for id_, stored in new.items()})
        for family, kind, halves in _runs(new.values()):
            self.count_by_family[family] += len(halves)
            if kind is Kind.EF:
                self.efs_by_family[family] += len(halves)
            of = self._of_kind[kind]
            others = of.by_address.add_all(family, halves)
            if others:
                expiring = [(half.utuple, new[half.id].expires_us) for half in others]
                of.by_box.add_many(expiring)

    def renew(self, id_: bytes, expires_us: int) -> None:
        stored = self.templates.get(id_)
        if stored is not None and stored.expires_us != expires_us:
            self._expiries.strike(id_, stored.expires_us)
            self._expiries.note(id_, expires_us)
            self.templates[id_] = stored._replace(expires_us=expires_us)
            self._of_kind[stored.packed.kind].by_box.renew(id_, expires_us)

    def pin(self, id_: bytes) -> bool:
        """Its reader is here: from now on it never expires. False if it had expired when EAs were last matched and was only
        not dropped yet: those EAs did not meet it."""
        was_alive = self.templates[id_].expires_us > self._matched_us
        self.renew(id_, NEVER_US)
        return was_alive

    def remove(self, id_: bytes) -> None:
        stored = self.templates.pop(id_, None)
        if stored is None:
            return
        half = stored.packed
        self.readers.strike(half)
        self._expiries.strike(id_, stored.expires_us)
        of, address = self._of_kind[half.kind], sole_address_of(half)
        if address is not None:
            of.by_address.remove(id_, half.family, address)
        else:
            of.by_box.remove(id_)
        _uncount(self.count_by_family, half.family)
        if half.kind is Kind.EF:
            _uncount(self.efs_by_family, half.family)

    def match(self, kind: Kind, columns: Columns, now_us: int) -> Matches:
        """Of this kind, those that are alive; a CF's own data template is not asked."""
        of = self._of_kind[kind]
        if kind is Kind.EF:
            self._matched_us = now_us
        by_box = of.by_box.match(columns, now_us)
        if not len(of.by_address):
            return by_box
        by_address = _joined(of.by_address.match(columns))
        if self._expiries.is_any_due(now_us):
            by_address = self._living(by_address, now_us)
        return _joined((by_address, by_box))

    def _living(self, found: Matches, now_us: int) -> Matches:
        """Without the expired. The address index knows no expiries, so that it has nothing but addresses and ids."""
        living = {id_: rows for id_, rows in found if self.templates[id_].expires_us > now_us}
        return found if len(living) == len(found.ids) else matches_of_lists(living)

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
        half = stored.packed
        if half.family is not family or half.kind is not kind:
            if family is not None and kind is not None:
                yield family, kind, alike
            alike = []
            family, kind = half.family, half.kind
        alike.append(half)
    if family is not None and kind is not None:
        yield family, kind, alike


def _uncount(counts: Counter[Family], family: Family) -> None:
    counts[family] -= 1
    if not counts[family]:
        del counts[family]


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
