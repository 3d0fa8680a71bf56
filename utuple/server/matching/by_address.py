"""The address index: templates that ask for one address and nothing else, by far the most there are. Pure.

They are found by dictionary; in cells (`cells.py`), where a family has very many and the loops for them are compiled.
Only their JSON is decoded, no uTuple is made: so a server that starts or learns takes in a million of them in seconds.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
import orjson

from utuple.model.columns import Columns
from utuple.model.condition import encode_where
from utuple.model.packed import Packed
from utuple.model.utuple import Family, Kind
from utuple.server.matching.cells import Cells, has_place
from utuple.server.matching.kernels import Kernels
from utuple.server.matching.matched import Matches, matches_of_lists

IdsByAddress = dict[str, bytes | list[bytes]]
"""The id of the template by its address; a list where several templates ask for the same address."""

MANY = 16_384
"""A family with fewer templates stays in the dictionary: that fits into the caches, and numba need not be loaded for it."""
MOVED = 4_096
"""How many move from the dictionary into cells with each batch that comes: a millisecond or two."""

NO_CONDITIONS = encode_where({})
"""The data half of an EF that asks nothing of the data."""


def sole_address(metadata: Mapping[str, Any]) -> str | None:
    """The address a template asks for, from its decoded metadata; None if it asks for anything else, or for more."""
    address = metadata["address"]
    if (
        metadata["since_us"] is None
        and metadata["until_us"] is None
        and metadata["area"] is None
        and type(address) is list
        and address[:1] == ["equal"]
        and type(address[-1]) is str
        and len(address) == 2
    ):
        return str(address[1])
    return None


def sole_address_of(half: Packed) -> str | None:
    """The same of a stored EF or CA. What a CA says in its data is no question."""
    if half.payload != NO_CONDITIONS and half.kind is Kind.EF:
        return None
    return sole_address(orjson.loads(half.metadata))


class _FamilyAddresses:
    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self.count = 0
        self.few: IdsByAddress = {}
        """All of them; with cells, only addresses that are too long for a cell."""
        self._moving: IdsByAddress = {}
        """With cells: those that were not moved there yet."""
        self._cells: Cells | None = None

    def add(self, addresses: Sequence[str], ids: Sequence[bytes]) -> None:
        self.count += len(ids)
        self.has_cells()
        self._put(addresses, ids)

    def remove(self, address: str, id_: bytes) -> None:
        self.count -= 1
        if _unname(self.few, address, id_) or _unname(self._moving, address, id_):
            return
        assert self._cells is not None
        self._cells.remove(address, id_)

    def has_cells(self) -> bool:
        """Begins cells if there are many templates and the compiled loops have been loaded, and moves some more. To be asked
        before `few` is looked at, since addresses too long for a cell move there."""
        if self._cells is None and self.count >= MANY:
            self._kernels.want()
            if self._kernels.cells is not None:
                self._cells = Cells(self._kernels.cells)
                self._moving, self.few = self.few, {}
        if self._moving:
            self._move()
        return self._cells is not None

    def match_many(self, addresses: Sequence[str]) -> Iterator[Matches]:
        """Of those in cells and on their way there."""
        assert self._cells is not None
        yield self._cells.match(addresses)
        if self._moving:
            yield matches_of_lists(_lists(map(self._moving.get, addresses)))

    def _put(self, addresses: Sequence[str], ids: Sequence[bytes]) -> None:
        if self._cells is not None:
            placed = [has_place(address) for address in addresses]
            self._cells.put(list(compress(addresses, placed)), list(compress(ids, placed)))
            if all(placed):
                return
            left = [not is_placed for is_placed in placed]
            addresses, ids = list(compress(addresses, left)), list(compress(ids, left))
        for address, id_ in zip(addresses, ids, strict=True):
            there = self.few.setdefault(address, id_)
            if there is not id_:
                self.few[address] = [*there, id_] if isinstance(there, list) else [there, id_]

    def _move(self) -> None:
        moved = [self._moving.popitem() for _ in range(min(MOVED, len(self._moving)))]
        pairs = [(address, id_) for address, there in moved for id_ in _each(there)]
        self._put(*zip(*pairs, strict=True))


class AddressIndex:
    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._of: dict[Family, _FamilyAddresses] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add_all(self, family: Family, given: Iterable[Packed]) -> list[Packed]:
        """Of one family, none of them here yet. Gives back those that ask for anything else."""
        left: list[Packed] = []
        addresses: list[str] = []
        ids: list[bytes] = []
        for half in given:
            address = sole_address_of(half)
            if address is None:
                left.append(half)
            else:
                addresses.append(address)
                ids.append(half.id)
        if ids:
            self._count += len(ids)
            self._of.setdefault(family, _FamilyAddresses(self._kernels)).add(addresses, ids)
        return left

    def remove(self, id_: bytes, family: Family, address: str) -> None:
        """One that is here."""
        self._count -= 1
        held = self._of[family]
        held.remove(address, id_)
        if not held.count:
            del self._of[family]

    def match(self, columns: Columns) -> Iterator[Matches]:
        """Each template that is met with its rows, ascending; expired ones too. None is met in two of them."""
        held = [self._of.get(family) for family in columns.families]
        many = [number for number, of in enumerate(held) if of is not None and of.has_cells()]
        addresses = columns.addresses
        few = [{} if of is None else of.few for of in held]
        if len(few) == 1 and few[0]:
            yield matches_of_lists(_lists(map(few[0].get, addresses)))
        elif any(few):
            of_rows = zip(columns.family, addresses, strict=True)
            yield matches_of_lists(_lists(few[number].get(name) for number, name in of_rows))
        for number in many:
            yield from _match_many(held[number], columns, number)


def _match_many(of: _FamilyAddresses | None, columns: Columns, number: int) -> Iterator[Matches]:
    assert of is not None
    if len(columns.families) == 1:
        yield from of.match_many(columns.addresses)
        return
    rows = np.flatnonzero(np.frombuffer(columns.family, dtype=np.uint32) == number).tolist()
    for found in of.match_many([columns.addresses[row] for row in rows]):
        yield Matches(found.ids, found.starts, array("q", [rows[at] for at in found.rows]))


def _lists(found: Iterable[bytes | list[bytes] | None]) -> Mapping[bytes, list[int]]:
    """Of what each row meets."""
    lists: defaultdict[bytes, list[int]] = defaultdict(list)
    for row, there in enumerate(found):
        if isinstance(there, bytes):
            lists[there].append(row)
        elif there is not None:
            for id_ in there:
                lists[id_].append(row)
    return lists


def _each(there: bytes | list[bytes]) -> Sequence[bytes]:
    return there if isinstance(there, list) else (there,)


def _unname(named: IdsByAddress, address: str, id_: bytes) -> bool:
    """Whether it was there."""
    there = named.get(address)
    if there is None or id_ not in _each(there):
        return False
    if isinstance(there, list) and len(there) > 1:
        there.remove(id_)
    else:
        del named[address]
    return True
