"""pytest's fixtures of uTupleSpace. Everything heavy is imported inside them: who uses none of them pays nothing.

utuple_cluster           a cluster of its own for this test run (under pytest-xdist: for each worker)
utuple_space             an empty space of it, for tests with an event loop (pytest-asyncio, anyio)
utuple_blocking_space    an empty space of it, for tests without one
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

try:  # its fixtures also work in its strict mode; anyio takes plain ones
    from pytest_asyncio import fixture as async_fixture
except ModuleNotFoundError:
    from pytest import fixture as async_fixture  # type: ignore[no-redef]

if TYPE_CHECKING:
    from utuple.client.blocking.space import Space as BlockingSpace
    from utuple.client.space import Space
    from utuple.testing.cluster import TestCluster


@pytest.fixture(scope="session")
def utuple_servers() -> int:
    """How many servers the cluster has; override it in your conftest.py for more."""
    return 1


@pytest.fixture(scope="session")
def utuple_cluster(utuple_servers: int) -> Iterator[TestCluster]:
    """A real cluster on embedded PostgreSQL, in a temporary folder, for the whole run."""
    from utuple.testing.cluster import TestCluster

    with TestCluster(utuple_servers) as cluster:
        yield cluster


@pytest.fixture
def utuple_empty(utuple_cluster: TestCluster) -> TestCluster:
    """The cluster with nothing in it: no events, readers or waiting commands of earlier tests."""
    utuple_cluster.empty()
    return utuple_cluster


@async_fixture
async def utuple_space(utuple_empty: TestCluster) -> AsyncIterator[Space]:
    """Connected to an empty cluster; closed after the test."""
    import utuple

    async with utuple.connect(utuple_empty.at) as space:
        yield space


@pytest.fixture
def utuple_blocking_space(utuple_empty: TestCluster) -> Iterator[BlockingSpace]:
    """Connected to an empty cluster; closed after the test."""
    import utuple

    with utuple.blocking.connect(utuple_empty.at) as space:
        yield space
