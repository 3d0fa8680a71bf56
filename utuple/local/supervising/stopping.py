"""Stopping a cluster: ask its supervisor, then see for oneself that nothing is left.

Also when the supervisor was killed: what it started is written down, and only that is ended.
"""

from __future__ import annotations

import signal

from utuple.local.folder import DataFolder, FolderError
from utuple.local.layout import Program
from utuple.local.ports import is_free
from utuple.local.processes import Process, end, strays
from utuple.runtime.postgresql.embedded import EmbeddedPostgres
from utuple.runtime.postgresql.process import processes_on, wait_until

_SUPERVISOR_LIMIT_S = 180.0
"""Each kind of program and PostgreSQL have their own, shorter limits: this is for one that hangs."""
_POLL_S = 0.05
_LAST_LOOK_S = 5.0


def stop_cluster(folder: DataFolder) -> bool:
    """Whether anything ran. Raises if something is left."""
    cluster = folder.read_cluster()
    if cluster is None:
        return False
    folder.make()
    ran = _stop_supervisor(folder)
    with folder.lock():
        left = {started.process for started in folder.all_started().values()}
        left |= set(strays(folder.path))
        postgres = EmbeddedPostgres(folder.postgres)
        ran = ran or bool(left) or postgres.is_running
        remaining = end(left)
        if not cluster.databases:
            postgres.stop()
        if ran:
            _see_nothing_left(folder, remaining, cluster.layout.programs)
        folder.forget_run()
    return ran


def _stop_supervisor(folder: DataFolder) -> bool:
    started = folder.started("supervisor")
    if started is None:
        return False
    process = started.process
    process.signal(signal.SIGTERM)
    if not wait_until(lambda: not process.is_alive, _SUPERVISOR_LIMIT_S, _POLL_S):
        end([process])
    return True


def _see_nothing_left(
    folder: DataFolder, remaining: list[Process], programs: list[Program]
) -> None:
    def taken() -> list[str]:
        return [program.address for program in programs if not is_free(program.port)]

    wait_until(lambda: not taken(), _LAST_LOOK_S, _POLL_S)
    said = [f"process {process.pid} does not end" for process in remaining]
    backends = processes_on(folder.postgres / "data")
    said += [f"PostgreSQL processes are left: {backends}"] if backends else []
    said += [f"still in use: {', '.join(taken())}"] if taken() else []
    if said:
        raise FolderError(
            f"{folder.path}: {'; '.join(said)}: end them by hand (kill -9 PID), then run `utuple "
            "down` again"
        )
