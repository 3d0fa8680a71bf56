"""How much each store of a cluster that does not run holds: what its capacity must not be below."""

from __future__ import annotations

from utuple.local.database import Database
from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.layout import database_of
from utuple.store.postgres.size import stored_bytes


async def stored_in(folder: DataFolder, cluster: ClusterFile) -> dict[str, int]:
    """By server. The embedded PostgreSQL is started for it, and stopped again."""
    servers = [name for name in cluster.layout.server_names if not cluster.is_new(name)]
    if cluster.databases:
        urls = dict(zip(cluster.layout.server_names, cluster.databases, strict=True))
        return {name: await stored_bytes(urls[name]) for name in servers}
    database = Database("postgres", folder.postgres, lambda _: None)
    was_running = database.pid is not None
    await database.start()
    try:
        return {name: await stored_bytes(database.dsn(database_of(name))) for name in servers}
    finally:
        if not was_running:
            await database.stop()
