"""A coroutine that has begun before it is awaited."""

from __future__ import annotations

import asyncio

import pytest

from utuple.runtime.begun import Begun


async def test_it_runs_at_once_up_to_where_it_waits_and_ends_when_awaited() -> None:
    seen: list[str] = []
    go = asyncio.Event()

    async def work() -> int:
        seen.append("begun")
        await go.wait()
        seen.append("over")
        return 7

    begun = Begun(work())
    assert seen == ["begun"]
    asyncio.get_running_loop().call_soon(go.set)
    assert await begun == 7
    assert seen == ["begun", "over"]


async def test_what_never_waits_is_over_and_may_be_awaited_later() -> None:
    async def at_once() -> str:
        return "done"

    begun = Begun(at_once())
    await asyncio.sleep(0)
    assert await begun == "done"


@pytest.mark.parametrize("waits", [True, False])
async def test_its_error_is_for_who_awaits_it(waits: bool) -> None:
    async def fail() -> None:
        if waits:
            await asyncio.sleep(0)
        raise KeyError("lost")

    begun = Begun(fail())
    with pytest.raises(KeyError, match="lost"):
        await begun


async def test_it_waits_several_times_also_when_what_it_waits_for_is_done_already() -> None:
    ready: list[asyncio.Future[int]] = [
        asyncio.get_running_loop().create_future() for _ in range(3)
    ]

    async def add() -> int:
        return sum([await one for one in ready])

    begun = Begun(add())
    for number, one in enumerate(ready, 1):
        one.set_result(number)
    assert await begun == 6


async def test_who_is_cancelled_while_awaiting_it_cancels_it() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            seen.append("tidied up")
            raise

    async def whole() -> None:
        await Begun(work())

    task = asyncio.create_task(whole())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled", "tidied up"]


async def test_a_limit_of_time_inside_it_holds() -> None:
    async def work() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    begun = Begun(work())
    with pytest.raises(TimeoutError):
        await begun
