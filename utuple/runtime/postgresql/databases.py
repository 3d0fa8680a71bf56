"""Databases in a running PostgreSQL, by its psql and createdb (psycopg belongs to the store)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from utuple.runtime.postgresql.binaries import PostgresBinaries, clean_environment
from utuple.runtime.postgresql.unavailable import PostgresUnavailable

# PostgreSQL's limit is 63 bytes; the rest keeps names plain in URLs and on command lines.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_NEXT_STEP = "see whether the disk is full or PostgreSQL was stopped; then try again."


def checked_name(database: str) -> str:
    if not _NAME.fullmatch(database):
        raise ValueError(
            f"database {database!r}: must be 1 to 63 of A-Z a-z 0-9 _ -, the first a letter or _"
        )
    return database


def create_database(dsn: str, name: str, binaries: PostgresBinaries, limit_s: float) -> bool:
    """False if it was there already. `dsn` names any other database of the same PostgreSQL."""
    if name in databases(dsn, binaries, limit_s):
        return False
    # template0 and not template1: creating fails while anybody is connected to its template.
    command = [binaries.path("createdb"), "-T", "template0", "--maintenance-db", dsn, name]
    done = _run(command, limit_s)
    if done.returncode == 0:
        return True
    if name in databases(dsn, binaries, limit_s):  # somebody else was faster
        return False
    raise PostgresUnavailable(
        f"The database {name} cannot be created: {done.stderr.strip()}", _NEXT_STEP
    )


def databases(dsn: str, binaries: PostgresBinaries, limit_s: float) -> list[str]:
    query = "SELECT datname FROM pg_database"
    done = _run([binaries.path("psql"), "-XAtc", query, dsn], limit_s)
    if done.returncode != 0:
        raise PostgresUnavailable(f"PostgreSQL does not answer: {done.stderr.strip()}", _NEXT_STEP)
    return done.stdout.splitlines()


def _run(command: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            timeout=limit_s,
            env=clean_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise PostgresUnavailable(
            f"{command[0]} had no answer within {limit_s:g} s.", _NEXT_STEP
        ) from error
