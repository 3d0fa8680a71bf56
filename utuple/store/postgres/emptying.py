"""A server's database seen from outside, for tests that share one server: what is left in it, and its events gone."""

from __future__ import annotations

import psycopg

_TEMPLATES = """
    SELECT templates.id, families.subject, families.type
    FROM utuple.templates JOIN utuple.families ON families.id = templates.family
"""


def templates_in(dsn: str) -> list[tuple[bytes, str, str]]:
    """EFs and CAs: their ids, subjects and types."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(_TEMPLATES).fetchall()
    return [(id_.bytes, subject, type_) for id_, subject, type_ in rows]


def delete_events(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("DELETE FROM utuple.events")
