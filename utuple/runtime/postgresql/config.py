"""The knobs of the embedded PostgreSQL, each with its reason.

They are given on the postmaster's command line at every start, which outranks `postgresql.conf`
and `ALTER SYSTEM`: a folder made by an older release gets today's values, and nobody can switch
durability off by editing a file.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class PostgresConfig:
    # Every server of a local cluster holds a handful, and idle ones cost little.
    max_connections: int = 200
    # Holds the pages being appended to and the hot index pages. More would only double what the
    # kernel caches already; this much still fits a small laptop.
    shared_buffers_mb: int = 256
    # At full ingest the default 1 GB forces a checkpoint every few seconds, and after each one
    # every touched page goes to the WAL whole. This is also what a crash may have to replay.
    max_wal_size_mb: int = 4096
    # Old WAL files kept for reuse: filling a new one with 16 MB of zeros stalls a commit.
    min_wal_size_mb: int = 512
    # One COPY batch should fit without a write in its middle; the automatic value is half of this.
    wal_buffers_mb: int = 16
    # Rarer than the default 5 min, for the same reason as max_wal_size.
    checkpoint_timeout_s: int = 900

    # initdb takes about 1 s; the rest is for slow disks.
    initdb_limit_s: float = 120.0
    # A plain start takes 0.1 s, but after a crash max_wal_size_mb are replayed first. A postmaster
    # that dies is noticed at once, so a generous limit costs nothing.
    start_limit_s: float = 300.0
    # A fast shutdown writes out shared_buffers_mb. Beyond this it becomes an immediate one.
    stop_limit_s: float = 60.0
    # Backends of a killed postmaster get SIGQUIT, which they obey at once.
    orphan_limit_s: float = 10.0
    # One createdb or psql call.
    command_limit_s: float = 60.0
    poll_interval_s: float = 0.01
    # Beyond this the log is set aside, at a start and while it runs (one old log is kept).
    log_limit_bytes: int = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 0:
                raise ValueError(
                    f"{field.name} is {getattr(self, field.name)}, must not be negative"
                )

    def settings(self) -> dict[str, str]:
        return {
            # An answered registration survives kill -9 and power loss (law 1).
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            # wal_compression stays off: this build has only pglz, whose CPU time the writer pays.
            "max_connections": str(self.max_connections),
            "shared_buffers": f"{self.shared_buffers_mb}MB",
            "max_wal_size": f"{self.max_wal_size_mb}MB",
            "min_wal_size": f"{self.min_wal_size_mb}MB",
            "wal_buffers": f"{self.wal_buffers_mb}MB",
            "checkpoint_timeout": f"{self.checkpoint_timeout_s}s",
            # Several servers share the machine's cores, cursors cannot use parallel plans anyway,
            # and their memory would come from /dev/shm, of which a container has 64 MB.
            "max_parallel_workers_per_gather": "0",
            # Made for local SSDs; the default of 4 is for spinning disks and avoids good indexes.
            "random_page_cost": "1.1",
            "timezone": "UTC",
            "log_timezone": "UTC",
            # Reached by unix socket only, and only by the user who started it.
            "listen_addresses": "",
            "unix_socket_permissions": "0700",
        }
