"""A cluster for a while: in a temporary folder, on free ports, and gone afterwards, also after Ctrl-C.

    async with cluster(servers=3) as running:
        async with utuple.connect(*running.managers) as space:
            ...
            running.kill("server-2")
            await running.revive("server-2")

Its programs are children of this process. `hosted` has the same for who has no event loop.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.keeper import Say
from utuple.local.layout import DEFAULT_SERVERS, Layout
from utuple.local.ports import claimed
from utuple.local.running import Cluster, Extras

Found = TypeVar("Found")


def _silent(said: str) -> None:
    """Nobody listens."""


@asynccontextmanager
async def cluster(
    servers: int = DEFAULT_SERVERS,
    managers: int = 1,
    *,
    scas: int = 1,
    monitor: bool = True,
    secure: bool = False,
    policy: Sequence[str] = (),
    extras: Extras | None = None,
    place: Path | None = None,
    say: Say = _silent,
    progress: Say = _silent,
) -> AsyncIterator[Cluster]:
    """Ready when the body begins, and nothing of it is left when it has ended.

    `policy` are knobs of its programs, NAME=VALUE; `place` is a folder that somebody else removes; `say` hears what happens
    to programs, `progress` what is waited for.
    """
    with (
        nullcontext(place) if place is not None else temporary_folder("cluster") as path,
        claimed() as port,
    ):
        folder = DataFolder(path)
        folder.make()
        wanted = ClusterFile(
            Layout(servers, managers, port, monitor=monitor, scas=tuple(range(1, scas + 1))),
            policy=tuple(policy),
            secure=secure,
        )
        folder.write_cluster(wanted)
        running = Cluster(folder, wanted, say, progress, extras)
        try:
            await running.start()
            yield running
        finally:
            progress("stopping the cluster")
            await running.stop()


@contextmanager
def temporary_folder(what: str) -> Iterator[Path]:
    path = new_folder(what)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def new_folder(what: str) -> Path:
    """PostgreSQL does not run as root: whoever it runs as must get to its folder."""
    path = Path(tempfile.mkdtemp(prefix=f"utuple-{what}-"))
    path.chmod(0o755)
    return path


async def until_interrupted(work: Coroutine[None, None, Found]) -> Found | None:
    """None if a signal came to end it: then it has cleaned up. A second, impatient Ctrl-C does not cut that short."""
    running = asyncio.create_task(work)
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if not running.cancelling():
            running.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupt)
    try:
        return await running
    except asyncio.CancelledError:
        return None
