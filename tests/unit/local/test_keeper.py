"""A program is kept alive, whatever becomes of the disk its keeper writes to."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from utuple.local.folder import DataFolder
from utuple.local.keeper import Keeper, until
from utuple.runtime.tasks import Tasks

LIMIT_S = 60.0
PROGRAM = [sys.executable, "-c", "import time; time.sleep(600)"]


async def soon(condition: Callable[[], bool]) -> None:
    await asyncio.wait_for(until(condition), LIMIT_S)


def test_a_program_is_started_again_after_its_keeper_could_not_write_it_down(
    tmp_path: Path,
) -> None:
    """Where run/ should be there is a file: an OSError as on a full disk, for every user, also for root."""
    folder = DataFolder(tmp_path)
    folder.make()
    run, aside = tmp_path / "run", tmp_path / "aside"
    said: list[str] = []
    keeper = Keeper("server-1", PROGRAM, folder, said.append)

    async def scene() -> None:
        failures: list[str] = []
        tasks = Tasks(lambda name, error, again_s: failures.append(f"{name}: {error}"))
        tasks.keep(keeper.keep, "keeping server-1")
        await soon(lambda: folder.started("server-1") is not None)
        first = keeper.pid
        assert first is not None

        run.rename(aside)
        run.write_text("no room")
        os.kill(first, signal.SIGKILL)
        await soon(lambda: len(failures) >= 2)
        second = keeper.pid
        assert second not in (None, first)  # it runs all the same
        run.unlink()
        aside.rename(run)
        await soon(
            lambda: (left := folder.started("server-1")) is not None and left.process.pid == second
        )
        assert keeper.pid == second  # noted, and not started once more

        assert second is not None
        os.kill(second, signal.SIGKILL)
        await soon(lambda: keeper.pid not in (None, second))
        await tasks.close()
        await keeper.stop()

    asyncio.run(scene())
    assert len([line for line in said if "started, pid" in line]) == 3
