"""Templates that ask for one address and nothing else: found by dictionary, by far the most there are. Pure.

They are recognised in their packed form, so that a server which starts or learns takes in a million of them without
making an object of any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import orjson

from utuple.errors import InvalidInput
from utuple.model.columns import Columns
from utuple.model.packed import Packed
from utuple.model.utuple import Family, Kind
from utuple.model.value import check_text

_BEGIN = b'{"address":["equal","'
_END = b'"],"since_us":null,"until_us":null,"area":null}'
_ADDRESS = slice(len(_BEGIN), -len(_END))
_QUOTED = slice(len(_BEGIN) - 1, 1 - len(_END))
_NO_CONDITIONS = b"{}"


def plain_address(half: Packed) -> str | None:
    """The one thing it asks for; None if it asks for anything else. What a CA says in its data is no question."""
    metadata = half[3]
    if (
        metadata.endswith(_END)
        and metadata.startswith(_BEGIN)
        and (half[4] == _NO_CONDITIONS or half[2] is Kind.CA)
    ):
        written = metadata[_ADDRESS]
        if b"\\" not in written:  # else JSON writes it otherwise than it is: left to the index
            return written.decode()
    return None


def is_plainly_right(half: Packed) -> bool:
    """One that somebody sent asks for an address only, a valid one, and is written as we write it."""
    try:
        address = plain_address(half)
        if not address:
            return False
        check_text("address", address)
    except (UnicodeDecodeError, InvalidInput):
        return False
    return orjson.dumps(address) == half.metadata[_QUOTED]


class Plain:
    def __init__(self) -> None:
        self._named: dict[Family, dict[str, bytes | list[bytes]]] = {}
        """A list where several ask for the same."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add_all(self, family: Family, given: Iterable[Packed]) -> list[Packed]:
        """Of one family, none of them here yet. Gives back those that are not plain."""
        named = self._named.get(family, {})
        left: list[Packed] = []
        for half in given:
            address = plain_address(half)
            if address is None:
                left.append(half)
                continue
            self._count += 1
            id_ = half[0]
            there = named.setdefault(address, id_)
            if there is not id_:
                named[address] = [*there, id_] if isinstance(there, list) else [there, id_]
        if named:
            self._named[family] = named
        return left

    def remove(self, id_: bytes, family: Family, address: str) -> None:
        """One that is here."""
        named = self._named[family]
        there = named[address]
        if isinstance(there, list) and len(there) > 1:
            there.remove(id_)
        else:
            del named[address]
            if not named:
                del self._named[family]
        self._count -= 1

    def match(self, columns: Columns) -> dict[bytes, list[int]]:
        """Each template that is met with its rows, ascending; expired ones too."""
        tables = [self._named.get(family, {}) for family in columns.families]
        addresses = columns.addresses
        found: Iterable[bytes | list[bytes] | None]
        if len(tables) == 1:
            found = map(tables[0].get, addresses)
        else:
            of = zip(columns.family, addresses, strict=True)
            found = (tables[number].get(address) for number, address in of)
        lists: defaultdict[bytes, list[int]] = defaultdict(list)
        for row, there in enumerate(found):
            if isinstance(there, bytes):
                lists[there].append(row)
            elif there is not None:
                for id_ in there:
                    lists[id_].append(row)
        return lists
