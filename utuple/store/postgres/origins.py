"""Whose uTuples a row is: a small number instead of a name, and where moves hide what they bring.

Number 0 is this server. Every other number stands for one server's uTuples as one move has brought them,
hidden while the move is noted beside it; so revealing is forgetting the move, whatever it brought, and one
server may have several visible numbers. No statement is given visible numbers from outside: it looks them
up itself, in its own snapshot, and so never sees a move half revealed or a number that was given anew.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    and_,
    delete,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from utuple.errors import UTupleError
from utuple.store.contract import OWN_ORIGIN, Batch, Transaction
from utuple.store.postgres.connection import Connection
from utuple.store.postgres.statements import any_of, compiled, rows
from utuple.store.postgres.tables import devices, events, origins

OWN_NUMBER = 0
OWN: ColumnElement[int] = literal_column(str(OWN_NUMBER))
"""Not a parameter: so that the planner leaves out the leaves of the other kind."""
NUMBERS_MAX = (1 << 15) - 1

Origin = tuple[str, bytes]
"""A server's name and the move that hides what it has brought, or b"" for none."""


# --- conditions ----------------------------------------------------------------------------------


def event_is_of(name: str) -> ColumnElement[bool]:
    """The EA is of this origin and not hidden."""
    origin = events.c.origin
    if name == OWN_ORIGIN:
        return origin == OWN
    numbers = select(origins.c.number).where(origins.c.name == name, origins.c.move.is_(None))
    return and_(origin > OWN, origin == func.any(func.array(numbers.scalar_subquery())))


def is_visible(origin: ColumnElement[Any]) -> ColumnElement[bool]:
    shown = select(origins.c.number).where(origins.c.move.is_(None))
    return or_(origin == OWN, origin.in_(shown))


def is_hidden(origin: ColumnElement[Any]) -> ColumnElement[bool]:
    return origin.in_(select(origins.c.number).where(origins.c.move.is_not(None)))


# --- numbers, in the writer's transaction ---------------------------------------------------------


def origin_of(batch: Batch) -> Origin:
    return batch.origin, batch.shadow


async def find_or_add(writer: Connection, asked: Set[Origin]) -> dict[Origin, int]:
    """The number under which each of these is written now."""
    if not asked:
        return {}
    async with writer.cursor(binary=True) as cursor:
        await cursor.execute(_all())
        found = await cursor.fetchall()
    known: dict[Origin, int] = {(name, move or b""): number for number, name, move in found}
    new = sorted(asked - known.keys())
    if new:
        taken = {number for number, _, _ in found}
        free = [number for number in range(1, len(taken) + len(new) + 1) if number not in taken]
        if free[len(new) - 1] > NUMBERS_MAX:
            raise UTupleError(f"this store holds what {NUMBERS_MAX} moves have brought: no room")
        numbers = dict(zip(new, free, strict=False))
        await writer.execute(
            _add(),
            {
                "number": list(numbers.values()),
                "name": [name for name, _ in numbers],
                "move": [move.hex() or None for _, move in numbers],
            },
        )
        known.update(numbers)
    return {origin: known[origin] for origin in asked}


async def hidden_numbers(writer: Connection, moves: Sequence[bytes]) -> list[int]:
    found = await writer.execute(_of_moves(), {"moves": [move.hex() for move in moves]})
    return [number for (number,) in await found.fetchall()]


async def reveal(writer: Connection, moves: Sequence[bytes]) -> None:
    await writer.execute(_reveal(), {"moves": [move.hex() for move in moves]})


async def forget_empty(writer: Connection) -> None:
    found = await (await writer.execute(_empty())).fetchall()
    await forget(writer, [number for (number,) in found])


async def forget(writer: Connection, numbers: Sequence[int]) -> None:
    """Nothing of theirs may be left."""
    await writer.execute(_forget(), {"numbers": list(numbers)})


# --- questions -----------------------------------------------------------------------------------


async def furthest(connection: Connection, move: bytes = b"") -> dict[str, int]:
    """The highest seq of each other server's EAs: the visible ones, or those this move hides."""
    parameters = {"moves": [move.hex()]} if move else {}
    found = await connection.execute(_furthest(is_shown=not move), parameters)
    return {name: seq for name, seq in await found.fetchall() if seq is not None}


async def are_any_empty(connection: Connection) -> bool:
    """Are there visible numbers of which no row is left?"""
    return await (await connection.execute(_empty())).fetchone() is not None


@cache
def _all() -> bytes:
    o = origins.c
    return compiled(select(o.number, o.name, o.move)).text


@cache
def _add() -> bytes:
    given = rows(list(origins.columns))
    return compiled(
        insert(origins).from_select(["number", "name", "move"], select(*given.columns))
    ).text


@cache
def _of_moves() -> bytes:
    return compiled(select(origins.c.number).where(any_of(origins.c.move, "moves"))).text


@cache
def _reveal() -> bytes:
    return compiled(update(origins).values(move=null()).where(any_of(origins.c.move, "moves"))).text


@cache
def _forget() -> bytes:
    return compiled(delete(origins).where(any_of(origins.c.number, "numbers"))).text


@cache
def _furthest(*, is_shown: bool) -> bytes:
    """An index of moved leaves gives the highest seq of a number at once."""
    o = origins.c
    highest: ScalarSelect[int] = (
        select(func.max(events.c.seq))
        .where(events.c.origin == o.number, events.c.origin > OWN)
        .scalar_subquery()
    )
    is_asked = o.move.is_(None) if is_shown else any_of(o.move, "moves")
    return compiled(
        select(o.name, func.max(highest)).where(is_asked).group_by(o.name).order_by(o.name)
    ).text


@cache
def _empty() -> bytes:
    o = origins.c
    held = [
        exists().where(table.c.origin == o.number, table.c.origin > OWN)
        for table in (events, devices)
    ]
    return compiled(select(o.number).where(o.move.is_(None), *(~there for there in held))).text


def origins_of(transaction: Transaction) -> set[Origin]:
    """Of what is not this server's own. A CF needs a number only to be hidden by."""
    others = [batch for batch in transaction.events if batch and batch.origin]
    hidden = [batch for batch in transaction.devices if batch and batch.shadow]
    return {origin_of(batch) for batch in (*others, *hidden)}
