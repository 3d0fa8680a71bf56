"""The supervisor as a process of its own, for `utuple up --detach`; prints to logs/supervisor.log.

`utuple up` writes down what is wanted (cluster.json) and starts this with the folder's name.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from utuple.errors import UTupleError
from utuple.local.folder import ClusterFile, DataFolder, FolderError
from utuple.local.keeper import Say
from utuple.local.running import noted
from utuple.local.supervisor import Supervisor
from utuple.runtime.log_file import LogFile
from utuple.runtime.postgresql.embedded import PostgresUnavailable


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
