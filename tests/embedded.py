"""A real PostgreSQL for tests: one embedded server a test process, one fresh database a test.

Under pytest-xdist every worker is a process and so has its own. Import `postgres` (the server) and
`database` (the address of a new, empty database) into a conftest to use them.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from utuple.runtime.postgres import EmbeddedPostgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """Not in tmp_path: pytest keeps those for three runs (40 MB each) and hides them from others."""
    with tempfile.TemporaryDirectory(prefix="utuple-test-") as folder:
        os.chmod(folder, 0o755)  # as root, PostgreSQL runs as another user and must reach it
        with EmbeddedPostgres(Path(folder).resolve() / "pg") as server:
            yield server


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> str:
    """Not created yet: a store creates its database."""
    return postgres.dsn(f"store_{uuid.uuid4().hex[:12]}")
