"""A server that cannot be reached: one knocks, the others wait for it."""

from __future__ import annotations

import asyncio

import pytest

from tests.twins.virtual_time import in_virtual_time
from utuple.client.sending.outages import Outages
from utuple.errors import OutcomeUnknown, Unavailable, UTupleError

FAR_S = 1_000.0


def fail(outages: Outages, who: str, error: UTupleError) -> None:
    with pytest.raises(type(error)), outages.attempt("sca-1", who):
        raise error


@in_virtual_time
async def test_others_wait_until_who_knocks_is_let_in() -> None:
    outages = Outages(0.5)
    assert not await outages.others_knock("sca-1", "a", FAR_S)
    fail(outages, "a", Unavailable("nobody there"))
    waiting = asyncio.create_task(outages.others_knock("sca-1", "b", FAR_S))
    for _ in range(3):
        assert not await outages.others_knock("sca-1", "a", FAR_S)
        assert not await outages.others_knock("sca-2", "b", FAR_S)
        fail(outages, "a", Unavailable("nobody there"))
        await asyncio.sleep(1.0)
        assert not waiting.done()
    with outages.attempt("sca-1", "a"):
        pass
    assert await waiting
    assert not await outages.others_knock("sca-1", "b", FAR_S)


@in_virtual_time
async def test_a_lost_answer_has_reached_the_server() -> None:
    outages = Outages(0.5)
    fail(outages, "a", Unavailable("nobody there"))
    fail(outages, "a", OutcomeUnknown("no answer"))
    assert not await outages.others_knock("sca-1", "b", FAR_S)


@in_virtual_time
async def test_a_call_that_does_not_fail_for_a_while_has_reached_the_server() -> None:
    """Its device may take seconds to confirm: nobody else is to wait for that."""
    outages = Outages(0.5)
    fail(outages, "a", Unavailable("nobody there"))
    waiting = asyncio.create_task(outages.others_knock("sca-1", "b", FAR_S))
    with outages.attempt("sca-1", "a"):
        await asyncio.sleep(0.4)
        assert not waiting.done()
        await asyncio.sleep(0.2)
        assert waiting.done()


@in_virtual_time
async def test_when_who_knocks_gives_up_another_does() -> None:
    outages = Outages(0.5)
    fail(outages, "a", Unavailable("nobody there"))
    waiting = asyncio.create_task(outages.others_knock("sca-1", "b", FAR_S))
    await asyncio.sleep(0.1)
    outages.leave("b")
    assert not waiting.done()
    outages.leave("a")
    assert await waiting
    fail(outages, "b", Unavailable("still nobody"))
    assert not await outages.others_knock("sca-1", "b", FAR_S)


@in_virtual_time
async def test_a_wait_that_is_too_long_ends_with_the_reason() -> None:
    outages = Outages(0.5)
    fail(outages, "a", Unavailable("nobody there"))
    with pytest.raises(Unavailable, match="nobody there"):
        await outages.others_knock("sca-1", "b", asyncio.get_running_loop().time() + 3.0)
    outages.end_all()
    assert not await outages.others_knock("sca-1", "b", FAR_S)
