"""Which data folder the cluster at an address has, so that `--at` alone names a cluster of this machine.

A supervisor leaves a note per manager's port while it runs, below $XDG_STATE_HOME or ~/.local/state. A note is only a
hint: the folder itself must say that its cluster listens there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from utuple.local.folder import DataFolder, read_json, write_json
from utuple.local.layout import HOST, Layout

_NAMES_OF_HERE = (HOST, "localhost")


@contextmanager
def noted(folder: DataFolder, layout: Layout) -> Iterator[None]:
    """While this lasts, the folder is found by the addresses of the cluster's managers."""
    notes = [_note(address) for address in layout.manager_addresses]
    with suppress(OSError):  # no home, or a full one: then --data must say it
        _place().mkdir(parents=True, exist_ok=True)
        for note in notes:
            write_json(note, {"folder": str(folder.path)})
    try:
        yield
    finally:
        for note in notes:
            with suppress(OSError):
                note.unlink(missing_ok=True)


def folder_at(addresses: Iterable[str]) -> DataFolder | None:
    """The folder of the cluster that one of these is a manager of, if it runs on this machine."""
    for address in addresses:
        host, _, port = address.rpartition(":")
        if host not in _NAMES_OF_HERE:
            continue
        found = (read_json(_note(address)) or {}).get("folder")
        folder = DataFolder(Path(found)) if isinstance(found, str) else None
        cluster = folder.read_cluster() if folder is not None else None
        if cluster is not None and f"{HOST}:{port}" in cluster.layout.manager_addresses:
            return folder
    return None


def _note(address: str) -> Path:
    return _place() / f"{address.rpartition(':')[2]}.json"


def _place() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "utuple" / "running"
