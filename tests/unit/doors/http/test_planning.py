"""A simulation that is told to end is over, with what it started."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.waiting import until
from utuple.doors.http.operators.planning import end

DEAF = "trap '' TERM; sleep 60 & echo $!; wait"
HEEDS = "sleep 60 & echo $!; wait"


@pytest.mark.parametrize("program", [DEAF, HEEDS])
async def test_a_simulation_ends_with_what_it_started_whether_it_heeds_or_not(program: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", program, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    child = int(await process.stdout.readline())
    await end(process, 0.2)
    assert process.returncode is not None
    await asyncio.to_thread(until, lambda: not is_running(child), "what it started is over", 10.0)


def is_running(pid: int) -> bool:
    """One that has ended may be there until its parent, which is not us, has heard of it."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return said.rpartition(")")[2].split()[0] != "Z"


async def test_one_that_has_ended_needs_nothing() -> None:
    process = await asyncio.create_subprocess_exec("true", start_new_session=True)
    await process.wait()
    await end(process)
    assert process.returncode == 0
