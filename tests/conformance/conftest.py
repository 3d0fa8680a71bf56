"""One suite, every store: each test that takes `store` or `place` is tried on both."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conformance.building import SERVER, Place
from tests.embedded import database, new_database, own_postgres, postgres, shared_database
from tests.strategies import NOW_US
from utuple.store.contract import Store
from utuple.store.memory import MemoryStore
from utuple.store.postgres.store import PostgresStore

__all__ = ["database", "new_database", "own_postgres", "postgres", "shared_database"]


@pytest.fixture(params=["memory", "postgres"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    if request.param == "memory":
        twin = MemoryStore()
        yield Place(lambda: twin)
        return
    dsn: str = request.getfixturevalue("database")
    made: list[PostgresStore] = []

    def make() -> Store:
        made.append(PostgresStore(dsn, create=True))
        return made[-1]

    yield Place(make)
    for one in made:
        await one.close()


@pytest.fixture
async def store(place: Place) -> Store:
    opened = place.make()
    await opened.open(SERVER, NOW_US)
    return opened


@pytest.fixture
async def real(database: str) -> AsyncIterator[PostgresStore]:
    """The PostgreSQL store alone, for what only it can do."""
    opened = PostgresStore(database, create=True)
    await opened.open(SERVER, NOW_US)
    yield opened
    await opened.close()
