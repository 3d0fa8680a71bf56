"""A real PostgreSQL for tests: one embedded server a test process, an empty database a test.

Under pytest-xdist every worker is a process and so has its own. Import these fixtures into a conftest to
use them there: `postgres` (the server), `own_postgres` (one to kill), `database` (the address of an empty
database), `new_database` (addresses of databases yet to be made).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from utuple.local.temporary import temporary_folder
from utuple.runtime.postgresql.embedded import EmbeddedPostgres
from utuple.store.postgres.tables import SCHEMA


@contextmanager
def running_postgres() -> Iterator[EmbeddedPostgres]:
    """Not in tmp_path: pytest keeps those for three runs (40 MB each) and hides them from others."""
    with temporary_folder("test") as folder, EmbeddedPostgres(folder / "pg") as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """One that a test may kill."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def shared_database(postgres: EmbeddedPostgres) -> str:
    postgres.create_database("shared")
    return postgres.dsn("shared")


@pytest.fixture
def database(shared_database: str) -> str:
    """An empty one. Making a database costs a second and emptying one does not, so it is the same
    database every time; whoever needs two at once takes `new_database`."""
    with psycopg.connect(shared_database) as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(SCHEMA)))
    return shared_database


@pytest.fixture
def new_database(postgres: EmbeddedPostgres) -> Callable[[], str]:
    """Addresses of databases that do not exist yet: a store creates its own."""
    return lambda: postgres.dsn(f"store_{uuid.uuid4().hex[:12]}")
