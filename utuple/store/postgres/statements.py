"""From SQLAlchemy to psycopg: statements as text with named parameters, built once where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Column, Executable, String, Table, bindparam, cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.selectable import TableValuedAlias

_DIALECT = PGDialect_psycopg()  # type: ignore[no-untyped-call]

Parameters = dict[str, Any]


class Statement(NamedTuple):
    text: bytes
    parameters: Parameters
    is_usual: bool = False
    """Asked again and again, and found the same way whatever its parameters are."""


def compiled(statement: Executable | ColumnElement[Any]) -> Statement:
    made = statement.compile(dialect=_DIALECT)  # type: ignore[union-attr]
    return Statement(made.string.encode(), made.params)


def rows(columns: Sequence[Column[Any]]) -> TableValuedAlias:
    """Rows given as one array a column: parameters are lists, named like the columns."""
    arrays = [bindparam(column.name, type_=ARRAY(column.type)) for column in columns]
    named: list[Column[Any]] = [Column(column.name, column.type) for column in columns]
    return func.unnest(*arrays).table_valued(*named, name="given").render_derived()


@cache
def upsert(table: Table) -> bytes:
    """Insert the given rows; one whose primary key is there already is replaced."""
    return upsert_over(table, None)


def upsert_over(table: Table, is_replaced: ColumnElement[bool] | None) -> bytes:
    """Insert the given rows; one whose primary key is there already is replaced if this holds of it."""
    given = rows(list(table.columns))
    adding = insert(table).from_select(
        [column.name for column in table.columns], select(*given.columns)
    )
    return compiled(
        adding.on_conflict_do_update(
            index_elements=list(table.primary_key.columns),
            set_={c.name: adding.excluded[c.name] for c in table.columns if not c.primary_key},
            where=is_replaced,
        )
    ).text


def any_of(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """The column is one of the parameter's values."""
    return column == func.any(bindparam(name, type_=ARRAY(column.type)))


def raw_text(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """As the bytes it came in: our connections read this type of text so (`session`)."""
    return cast(column, String)
