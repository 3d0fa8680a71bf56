"""What a PostgreSQL is told about durability, for who looks from outside (`utuple doctor`)."""

from __future__ import annotations

import psycopg

DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
_LIMIT_S = 3


async def durability_of(dsn: str) -> dict[str, str] | None:
    """By name; None if it does not answer."""
    try:
        async with await psycopg.AsyncConnection.connect(dsn, connect_timeout=_LIMIT_S) as asked:
            query = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
            rows = await (await asked.execute(query, (list(DURABILITY),))).fetchall()
    except psycopg.Error:
        return None
    return {str(name): str(setting) for name, setting in rows}
