"""What a PostgreSQL is told about durability, for who looks from outside (`utuple doctor`)."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
_LIMIT_S = 3


@dataclass(frozen=True)
class Setting:
    name: str
    value: str
    mended_by: str
    """What turns it on again, which depends on where it was turned off."""


_MENDED_BY = {
    "database": "ALTER DATABASE {database} RESET {name}",
    "user": "ALTER ROLE {user} RESET {name}",
    "database user": "ALTER ROLE {user} IN DATABASE {database} RESET {name}",
    "command line": "start PostgreSQL without {name} on its command line",
}
_BY_FILE = "ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf()"


async def durability_of(dsn: str) -> list[Setting] | None:
    """None if it does not answer."""
    try:
        async with await psycopg.AsyncConnection.connect(dsn, connect_timeout=_LIMIT_S) as asked:
            query = (
                "SELECT name, setting, source FROM pg_settings WHERE name = ANY(%s) ORDER BY name"
            )
            rows = await (await asked.execute(query, (list(DURABILITY),))).fetchall()
            where = {"database": asked.info.dbname, "user": asked.info.user}
    except psycopg.Error:
        return None
    return [
        Setting(name, value, _MENDED_BY.get(source, _BY_FILE).format(name=name, **where))
        for name, value, source in rows
    ]
