"""No task of a program ends unseen: each has an owner that reports, begins it again, or ends the program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from utuple.runtime.tasks import Tasks, all_ended, run_until

Reported = list[tuple[str, str, float | None]]


def reporting(reported: Reported) -> Tasks:
    return Tasks(lambda name, error, again_s: reported.append((name, str(error), again_s)))


async def fail(said: str) -> None:
    raise ValueError(said)


def test_a_task_that_fails_is_reported_though_its_owner_still_holds_it() -> None:
    reported: Reported = []

    async def scene() -> None:
        held = reporting(reported).start(fail("a full disk"), "writing")
        await asyncio.wait([held])
        await asyncio.sleep(0)

    asyncio.run(scene())
    assert reported == [("writing", "a full disk", None)]


def test_a_kept_task_is_begun_again_after_each_failure_until_it_returns() -> None:
    reported: Reported = []
    lives: list[int] = []

    async def third_time_lucky() -> None:
        lives.append(len(lives))
        if len(lives) < 3:
            await fail(f"life {len(lives)}")

    async def scene() -> None:
        await reporting(reported).keep(third_time_lucky, "keeping")

    asyncio.run(scene())
    assert lives == [0, 1, 2]
    assert reported == [("keeping", "life 1", 0.1), ("keeping", "life 2", 0.2)]


def test_close_ends_them_all_and_a_cancelled_one_is_no_failure() -> None:
    reported: Reported = []

    async def scene() -> int:
        tasks = reporting(reported)
        tasks.start(asyncio.Event().wait(), "once")
        tasks.keep(lambda: fail("again"), "kept")
        await asyncio.sleep(0)
        await tasks.close()
        return len(tasks)

    assert asyncio.run(scene()) == 0
    assert reported == [("kept", "again", 0.1)]


def test_without_a_report_the_loop_is_told_which_task_it_was() -> None:
    told: list[dict[str, Any]] = []

    async def scene() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        await asyncio.wait([Tasks().start(fail("a bug"), "delivering")])
        await asyncio.sleep(0)

    asyncio.run(scene())
    ((message, error),) = [(context["message"], context["exception"]) for context in told]
    assert message == "task delivering failed" and str(error) == "a bug"


async def end_at_once() -> None:
    return


@pytest.mark.parametrize(
    ("work", "error"),
    [(lambda: fail("a bug"), ValueError), (end_at_once, RuntimeError)],
    ids=["fails", "returns"],
)
def test_work_that_ends_by_itself_ends_the_program(
    work: Callable[[], Coroutine[Any, Any, None]], error: type[Exception]
) -> None:
    with pytest.raises(error):
        asyncio.run(run_until(asyncio.Event(), work()))


def test_a_program_that_is_asked_to_stop_ends_without_an_error() -> None:
    async def for_ever() -> None:
        await asyncio.Event().wait()

    async def scene() -> None:
        stop = asyncio.Event()
        stop.set()
        await run_until(stop, for_ever())

    asyncio.run(scene())


def test_all_have_ended_when_one_has_failed_and_the_first_error_is_raised() -> None:
    ended: list[int] = []

    async def wait(number: int) -> int:
        for _ in range(number):
            await asyncio.sleep(0)
        ended.append(number)
        return number

    async def scene() -> None:
        assert await all_ended(wait(3), wait(1)) == [3, 1]
        with pytest.raises(ValueError, match="first"):
            await all_ended(fail("first"), wait(5), fail("second"))

    asyncio.run(scene())
    assert ended == [1, 3, 5]
