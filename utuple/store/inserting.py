"""A few EAs and nothing else, as one statement that is a transaction by itself: with BEGIN, COPY and COMMIT a lonely
event would wait for four round trips, and so would those behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from utuple.model.utuple import Family
from utuple.store.contract import Batch, Transaction
from utuple.store.copying import COLUMNS
from utuple.store.leaves import Leaf, place
from utuple.store.origins import OWN_NUMBER
from utuple.store.session import Connection
from utuple.store.statements import Parameters

MOST_ROWS = 32
"""Between 16 rows, which cost the writer less this way than by COPY, and 64, which cost more (decision 21)."""

_TYPES = (
    *("bigint", "bigint", "bigint", "double precision", "double precision"),
    *("uuid", "integer", "smallint", "text", "text"),
)


@dataclass(frozen=True, slots=True)
class Few:
    """Own EAs that go into one leaf, and the seq after them."""

    leaf: Leaf
    rows: int
    parameters: Parameters

    async def insert(self, writer: Connection) -> None:
        """Committed when it returns."""
        await writer.execute(_insert(self.leaf), self.parameters, prepare=True)


def few_of(transaction: Transaction, ids: Mapping[Family, int]) -> Few | None:
    """None if there is more to it: other rows, other leaves, families that are not known yet."""
    batches = transaction.events
    count = sum(map(len, batches))
    if not 0 < count <= MOST_ROWS or not replace(transaction, events=()).is_empty:
        return None
    if any(batch.origin or not ids.keys() >= {*batch.columns.families} for batch in batches):
        return None
    lifetimes_us = list(chain.from_iterable(batch.columns.lifetimes_us for batch in batches))
    expires_us = list(chain.from_iterable(batch.expires_us for batch in batches))
    leaves = place(np.array(lifetimes_us, np.int64), np.array(expires_us, np.int64))
    if len(leaves) > 1:
        return None
    parameters = _parameters(batches, expires_us, ids)
    return Few(leaves[0][0], count, {**parameters, "noted_seq": transaction.seq})


def _parameters(
    batches: Sequence[Batch], expires_us: list[int], ids: Mapping[Family, int]
) -> Parameters:
    parts = [batch.columns for batch in batches]
    values: list[list[Any]] = [
        list(chain.from_iterable(batch.seqs for batch in batches)),
        list(chain.from_iterable(part.times_us for part in parts)),
        expires_us,
        list(chain.from_iterable(part.lats for part in parts)),
        list(chain.from_iterable(part.lons for part in parts)),
        [id_.hex() for part in parts for id_ in part.each_id()],
        [ids[part.families[number]] for part in parts for number in part.family],
        [OWN_NUMBER] * len(expires_us),
        list(chain.from_iterable(part.addresses for part in parts)),
        [payload.decode() for part in parts for payload in part.payloads],
    ]
    return dict(zip(COLUMNS.split(", "), values, strict=True))


@cache
def _insert(leaf: Leaf) -> bytes:
    names = zip(COLUMNS.split(", "), _TYPES, strict=True)
    given = ", ".join(f"%({name})s::{type_}[]" for name, type_ in names)
    return (
        "WITH noted AS (UPDATE meta SET seq = %(noted_seq)s) "
        f"INSERT INTO {leaf.name} ({COLUMNS}) SELECT * FROM unnest({given})"
    ).encode()
