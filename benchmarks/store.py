"""The tables EAs lie in, as hand-written SQL finds them in a server's database."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from benchmarks.benchmark import BenchFailed

_LARGEST = """
    SELECT inhrelid::regclass::text FROM pg_inherits
    WHERE inhparent = 'utuple.events'::regclass
    ORDER BY pg_relation_size(inhrelid) DESC LIMIT 1
"""
COLUMNS = SQL("seq, time_us, expires_us, lat, lon, id, family, origin, address, data")


def largest_leaf(connection: psycopg.Connection[Any]) -> Identifier:
    found = connection.execute(_LARGEST).fetchone()
    if found is None:
        raise BenchFailed("the server has stored nothing yet")
    return Identifier(*found[0].split("."))


def make_like(connection: psycopg.Connection[Any], leaf: Identifier, number: int) -> Identifier:
    """An empty table like it, with the same indexes and checks."""
    table = Identifier("bare", f"events_{number}")
    connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS bare"))
    made: Composed = SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(table, leaf)
    connection.execute(made)
    return table
