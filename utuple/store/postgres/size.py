"""How large a store is, asked by somebody who does not serve it."""

from __future__ import annotations

import psycopg

from utuple.store.postgres.searching.lookup import devices_and_bytes
from utuple.store.postgres.session import Sessions, unavailable


async def stored_bytes(dsn: str) -> int:
    """0 where there is no store yet. Raises StoreUnavailable."""
    sessions = Sessions(dsn, "size")
    try:
        connection = await sessions.connect("utuple-size")
        async with connection:
            try:
                return (await devices_and_bytes(connection))[1]
            except psycopg.errors.UndefinedTable:
                return 0
    except psycopg.Error as error:
        raise unavailable(error, dsn) from error
