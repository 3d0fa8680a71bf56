"""What `utuple up` was asked for against what the folder already holds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from utuple.cli.local.folder import ClusterFile, FolderError
from utuple.cli.local.layout import DEFAULT_MANAGERS, DEFAULT_PORT, DEFAULT_SERVERS, Layout

_SCHEMES = ("postgresql://", "postgres://")


def cluster_for(
    known: ClusterFile | None,
    *,
    servers: int | None,
    managers: int | None,
    port: int | None,
    databases: Sequence[str] = (),
    unsafe: bool = False,
) -> ClusterFile:
    """A new cluster on an empty folder, or the folder's own; None means "as it is"."""
    if known is None:
        layout = Layout(
            servers if servers is not None else DEFAULT_SERVERS,
            managers if managers is not None else DEFAULT_MANAGERS,
            port if port is not None else DEFAULT_PORT,
        )
        return ClusterFile(layout, _databases(databases, layout.servers), unsafe)
    layout = known.layout
    for option, asked, kept in (
        ("--servers", servers, layout.servers),
        ("--managers", managers, layout.managers),
        ("--port", port, layout.port),
    ):
        if asked is not None and asked != kept:
            raise FolderError(
                f"{option} {asked} was asked for, but the cluster in this folder has {kept}: leave "
                f"{option} out to start it as it is, or choose another folder with --data"
            )
    if databases and bool(databases) != bool(known.databases):
        raise FolderError(
            "--database was given, but the uTuples of the cluster in this folder are in its embedded "
            "PostgreSQL: leave --database out, or choose another folder with --data"
        )
    # A database may have moved to another machine: its new URL is the truth.
    moved = _databases(databases, layout.servers) or known.databases
    return replace(known, databases=moved, unsafe=unsafe)


def _databases(databases: Sequence[str], servers: int) -> tuple[str, ...]:
    if databases and len(databases) != servers:
        raise FolderError(
            f"--database was given {len(databases)} times for {servers} servers: give it once for "
            "each, in their order, or leave it out for the embedded PostgreSQL"
        )
    for url in databases:
        if not url.startswith(_SCHEMES):
            raise FolderError(f"--database: {url!r} must begin with postgresql://")
    if len(set(databases)) != len(databases):
        raise FolderError("--database names one database twice: every server needs its own")
    return tuple(databases)
