"""The supervisor as a process of its own, for `utuple up --detach`; prints to logs/supervisor.log.

`utuple up` writes down what is wanted (cluster.json), starts this with the folder's name (`start_detached`) and waits until
the cluster is ready.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from utuple.errors import UTupleError
from utuple.local.folder import ClusterFile, DataFolder, FolderError
from utuple.local.keeper import Say
from utuple.local.running import StartFailed
from utuple.local.supervising.registry import noted
from utuple.local.supervising.supervisor import Supervisor
from utuple.runtime.log_file import LogFile
from utuple.runtime.postgresql.unavailable import PostgresUnavailable, last_lines

_POLL_S = 0.05
_STOP_LIMIT_S = 120.0


async def supervise(
    folder: DataFolder, cluster: ClusterFile, say: Say, on_ready: Callable[[], None]
) -> signal.Signals | None:
    """Until a signal asks for the end; which one it was."""
    stop = asyncio.Event()
    asked: list[signal.Signals] = []
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        asked.append(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal, number)
    with noted(folder, cluster.layout):
        await Supervisor(folder, cluster, say).run(stop, on_ready)
    return asked[0] if asked else None


def start_detached(folder: DataFolder, progress: Callable[[str], None]) -> int:
    """The supervisor's pid, once the cluster is ready. `progress` hears what is being done."""
    with folder.lock():  # refuses if one runs; else what the last one said about itself is old
        folder.forget_state()
    log = folder.log("supervisor")
    folder.set_aside_long_log("supervisor")
    command = [sys.executable, "-P", "-m", "utuple.local.supervising.daemon", str(folder.path)]
    with log.open("ab") as output:
        daemon = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder.path,
            start_new_session=True,
        )
    try:
        return _await_ready(folder, daemon, progress)
    except KeyboardInterrupt:
        daemon.terminate()
        daemon.wait(_STOP_LIMIT_S)
        raise


def _await_ready(
    folder: DataFolder, daemon: subprocess.Popen[bytes], progress: Callable[[str], None]
) -> int:
    # No deadline here: the supervisor has its own, and its end is noticed at once.
    while True:
        ended = daemon.poll() is not None
        state, said = folder.state()
        if state == "ready" and not ended:
            return daemon.pid
        if ended:
            break
        progress(said)
        time.sleep(_POLL_S)
    if state == "failed":
        folder.forget_state()
        raise StartFailed(said)
    log = folder.log("supervisor")
    raise StartFailed(f"the supervisor ended. The last lines of {log}:\n{last_lines(log)}")


def with_time(said: str) -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {said}"


def main(path: str) -> int:
    folder = DataFolder(Path(path))
    try:
        cluster = folder.read_cluster()
        if cluster is None:
            raise FolderError(f"{folder.path} holds no cluster: make one with `utuple up`")
        log = LogFile(folder.log("supervisor"))

        def say(said: str) -> None:
            log.write(with_time(said))

        asyncio.run(supervise(folder, cluster, say, lambda: say("ready")))
    except (UTupleError, PostgresUnavailable, OSError) as error:
        with suppress(OSError):  # a full disk: whoever waits for us sees that we have ended
            sys.stderr.write(with_time(f"failed: {error}") + "\n")  # which is logs/supervisor.log
            folder.note_state("failed", str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
