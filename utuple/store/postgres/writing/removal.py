"""Deleting what a move has taken elsewhere, or has given up bringing: rows, in the writer's transaction.

EAs otherwise go by the leaf. Here rows of some families or of some origins go and their neighbours stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

from sqlalchemy import (
    ColumnElement,
    Table,
    Text,
    and_,
    delete,
    func,
    literal_column,
    select,
)

from utuple.model.section import Section
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.families import is_in_section, section_ends
from utuple.store.postgres.origins import OWN, forget, hidden_numbers, is_visible
from utuple.store.postgres.partitions import Leaf, leaf_named
from utuple.store.postgres.statements import Parameters, any_of, compiled
from utuple.store.postgres.tables import devices, events, families, positions

RemovedRows = Counter[Leaf]
"""How many EAs went from each leaf."""


async def remove_sections(writer: Connection, sections: Sequence[Section]) -> RemovedRows:
    """EAs and CFs that are not hidden, whosever they are."""
    gone: RemovedRows = Counter()
    for section in sections:
        gone += await _run(writer, deletes_of_section(), section_ends(section))
    return gone


async def drop_shadows(writer: Connection, moves: Sequence[bytes]) -> RemovedRows:
    """What these moves have brought here and not revealed."""
    numbers = await hidden_numbers(writer, moves)
    if not numbers:
        return Counter()
    gone = await _run(writer, deletes_of_origins(), {"numbers": numbers})
    await forget(writer, numbers)
    return gone


async def _run(
    writer: Connection, statements: Sequence[bytes], parameters: Parameters
) -> RemovedRows:
    """The last one says what went from where."""
    *others, last = statements
    for statement in others:
        await writer.execute(statement, parameters)
    counted = await (await writer.execute(last, parameters)).fetchall()
    named = [(leaf_named(name), rows) for name, rows in counted]
    return Counter({leaf: rows for leaf, rows in named if leaf is not None})


@cache
def deletes_of_section() -> tuple[bytes, ...]:
    def is_in(table: Table) -> ColumnElement[bool]:
        is_family = and_(table.c.family == families.c.id, is_in_section())
        return and_(is_family, is_visible(table.c.origin))

    return _deletes(is_in(devices), is_in(events))


@cache
def deletes_of_origins() -> tuple[bytes, ...]:
    def is_of(table: Table) -> ColumnElement[bool]:
        return and_(table.c.origin > OWN, any_of(table.c.origin, "numbers"))

    return _deletes(is_of(devices), is_of(events))


def _deletes(
    device_goes: ColumnElement[bool], event_goes: ColumnElement[bool]
) -> tuple[bytes, ...]:
    """Positions with their CFs, then the EAs."""
    formals = select(devices.c.id).where(device_goes)
    gone = delete(events).where(event_goes).returning(literal_column("events.tableoid")).cte("gone")
    leaf: ColumnElement[int] = literal_column("gone.tableoid")
    name: ColumnElement[str] = literal_column("gone.tableoid::regclass::text", Text)
    return (
        compiled(delete(positions).where(positions.c.formal.in_(formals))).text,
        compiled(delete(devices).where(device_goes)).text,
        compiled(select(name, func.count()).select_from(gone).group_by(leaf)).text,
    )
