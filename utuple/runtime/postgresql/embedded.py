"""A real PostgreSQL in a folder, for `utuple up`: nothing to install, nothing to administer.

    folder/data           the database cluster
    folder/postgres.log   what initdb and PostgreSQL print
    folder/.s.PGSQL.5432  the unix socket while it runs (elsewhere if the path is too long)

The postmaster outlives the program that started it. So `start` first looks for one that already
runs, and the folder, not this object, is what knows: any number of objects and processes may name
the same folder, and take turns by a lock on it.

It knows nothing of uTuples, and talks to PostgreSQL by PostgreSQL's own programs only.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from utuple.runtime.postgresql.binaries import PostgresBinaries, find_binaries
from utuple.runtime.postgresql.config import PostgresConfig
from utuple.runtime.postgresql.databases import checked_name, create_database
from utuple.runtime.postgresql.folder import (
    check_version,
    check_writable,
    data_folder,
    initialise,
    log_file,
    make_folder,
    open_log,
    set_aside_running_log,
    turn_on,
)
from utuple.runtime.postgresql.identity import Identity, choose_identity
from utuple.runtime.postgresql.process import (
    Postmaster,
    find_postmaster,
    forget_reused_pid,
    processes_on,
    quit_processes,
    read_pid_file,
    runs_on,
    wait_until,
)
from utuple.runtime.postgresql.socket import (
    PORT,
    address,
    make_private_folder,
    remove_sockets,
    socket_folder_of,
)
from utuple.runtime.postgresql.unavailable import PostgresUnavailable

__all__ = ["EmbeddedPostgres", "PostgresConfig", "PostgresUnavailable"]


class EmbeddedPostgres:
    def __init__(self, folder: Path, config: PostgresConfig | None = None) -> None:
        # Resolved, so that a folder has one name, and one socket, whatever way it is reached.
        self.folder = folder.expanduser().resolve()
        self._data = data_folder(self.folder)
        self._config = config or PostgresConfig()
        # The postmaster, if this object started it; kept to collect its exit status.
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the postmaster, whoever started it."""
        postmaster = self._postmaster()
        return postmaster.pid if postmaster is not None else None

    @property
    def is_running(self) -> bool:
        return self.pid is not None

    def dsn(self, database: str = "postgres") -> str:
        """The URL for libpq, psycopg and SQLAlchemy; good while it runs."""
        postmaster = self._postmaster()
        noted = postmaster.socket_folder if postmaster is not None else None
        return address(noted or socket_folder_of(self.folder), checked_name(database))

    def set_aside_long_log(self) -> None:
        """For whoever keeps it running: its log grows while it does."""
        set_aside_running_log(self.folder, self._config)

    def start(self) -> bool:
        """Ready when this returns. True if started now, False if one was running already."""
        binaries = find_binaries()
        make_folder(self.folder)
        with turn_on(self.folder, self._config) as lock_fd:
            return self._start(binaries, lock_fd)

    def stop(self) -> None:
        """Ends open sessions, makes everything durable, leaves only data and log. Idempotent."""
        if not os.path.exists(self.folder):
            return
        check_writable(self.folder)
        with turn_on(self.folder, self._config) as lock_fd:
            if self._postmaster() is None and read_pid_file(self._data) is not None:
                # It crashed. Its shared memory is still about, and only a start can find it.
                self._start(find_binaries(), lock_fd)
            postmaster = self._postmaster()
            if postmaster is not None:
                self._stop(postmaster)
                remove_sockets(postmaster.socket_folder or self.folder, self.folder)
            remove_sockets(socket_folder_of(self.folder), self.folder)

    def create_database(self, name: str) -> bool:
        """False if it was there already."""
        checked_name(name)
        return create_database(self.dsn(), name, find_binaries(), self._config.command_limit_s)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self, binaries: PostgresBinaries, lock_fd: int) -> bool:
        if self._settled_postmaster() is not None:
            self._await_ready()
            return False
        identity = choose_identity(self.folder, binaries)
        if not self._data.exists():
            initialise(self.folder, binaries, identity, self._config, lock_fd)
        check_version(self.folder, binaries)
        self._clear_remains()
        self._launch(binaries, identity)
        self._await_ready()
        return True

    def _settled_postmaster(self) -> Postmaster | None:
        """One to adopt. One that is stopping is waited for, since it will not come back."""

        def settled() -> bool:
            found = self._postmaster()
            return found is None or not found.is_stopping

        if not self._wait_until(settled, self._config.stop_limit_s):
            raise self._unavailable("The PostgreSQL that runs here is stopping and does not end.")
        return self._postmaster()

    def _clear_remains(self) -> None:
        """Backends may outlive a killed postmaster, and PostgreSQL will not start beside them."""
        quit_processes(processes_on(self._data))
        if not self._wait_until(lambda: not processes_on(self._data), self._config.orphan_limit_s):
            raise self._unavailable(
                f"Processes of an earlier PostgreSQL do not end: {processes_on(self._data)}."
            )
        stale = forget_reused_pid(self._data)
        if stale is not None and stale.socket_folder is not None:
            remove_sockets(stale.socket_folder, self.folder)

    def _launch(self, binaries: PostgresBinaries, identity: Identity) -> None:
        socket_folder = socket_folder_of(self.folder)
        if socket_folder != self.folder:
            make_private_folder(socket_folder, identity.uid, identity.gid)
        settings = self._config.settings() | {
            "port": str(PORT),
            # Quoted, because it is a list and the path may hold spaces.
            "unix_socket_directories": f'"{socket_folder}"',
        }
        command = [binaries.path("postgres"), "-D", str(self._data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with open_log(self.folder, identity, self._config) as log_fd:
            self._child = identity.spawn(command, log_fd)

    def _await_ready(self) -> None:
        def ready_or_gone() -> bool:
            postmaster = self._postmaster()
            return postmaster.is_ready if postmaster is not None else not self._child_runs()

        if not self._wait_until(ready_or_gone, self._config.start_limit_s):
            raise self._unavailable(
                f"PostgreSQL (pid {self.pid}) is not ready after {self._config.start_limit_s:g} s. "
                "It goes on starting, perhaps with the recovery from a crash.",
                "start again to go on waiting, or stop it.",
            )
        if not self.is_running:
            remove_sockets(socket_folder_of(self.folder), self.folder)
            raise self._unavailable("PostgreSQL ended while it was starting.")

    def _stop(self, postmaster: Postmaster) -> None:
        # SIGINT is the fast shutdown; SIGQUIT the immediate one, and the next start recovers.
        for signal_number in (signal.SIGINT, signal.SIGQUIT):
            if runs_on(postmaster.pid, self._data):
                os.kill(postmaster.pid, signal_number)
            if self._wait_until(lambda: self._gone(postmaster.pid), self._config.stop_limit_s):
                break
        else:
            raise self._unavailable(f"PostgreSQL (pid {postmaster.pid}) does not end.")

    def _postmaster(self) -> Postmaster | None:
        self._child_runs()  # collects its exit status: a dead child's pid lives on until then
        return find_postmaster(self._data)

    def _gone(self, pid: int) -> bool:
        return not self._child_runs() and not runs_on(pid, self._data)

    def _child_runs(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def _wait_until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        return wait_until(condition, limit_s, self._config.poll_interval_s)

    def _unavailable(self, what: str, next_step: str = "") -> PostgresUnavailable:
        usual = f"look for the reason in the log (a full disk?), then start {self.folder} again."
        return PostgresUnavailable(what, next_step or usual, log=log_file(self.folder))
