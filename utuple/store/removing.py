"""Deleting what a move has taken elsewhere, or has given up bringing: rows, in the writer's transaction.

EAs are deleted leaf by leaf, so that it is known what is left in each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from sqlalchemy import (
    ColumnElement,
    Table,
    and_,
    bindparam,
    delete,
    select,
)

from utuple.model.section import Section
from utuple.store.families import signed_ends
from utuple.store.leaves import Leaf
from utuple.store.origins import forget, hidden_numbers, is_visible
from utuple.store.session import Connection
from utuple.store.statements import Parameters, any_of, compiled
from utuple.store.tables import devices, events, families, positions


async def drop_shadows(
    writer: Connection, moves: Sequence[bytes], leaves: Iterable[Leaf]
) -> Counter[Leaf]:
    """What these moves have hidden here. Gives the rows that went, as less than none."""
    numbers = await hidden_numbers(writer, moves)
    if not numbers:
        return Counter()
    moved = [leaf for leaf in leaves if leaf.is_moved]
    gone = await _delete(writer, moved, _ofnumbers, {"numbers": numbers})
    await forget(writer, numbers)
    return gone
