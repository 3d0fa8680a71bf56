"""The way to one server: what is not answered, and what is never sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pytest

from tests.twins.virtual_time import in_virtual_time
from utuple.client.config import Config
from utuple.client.sending.send_queue import SendQueue
from utuple.errors import OutcomeUnknown, Overloaded, Unavailable

CONFIG = Config(timeout_s=10.0, queued_rows=2)


@dataclass(slots=True, eq=False)
class Thing:
    rows: int = 1
    size_bytes: int = 1
    sent: bool = False
    may_go_elsewhere: bool = False
    send_by_s: float = inf
    answer: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def joins(self, shared: dict[object, object]) -> bool:
        return not shared.setdefault("taken", False) and not shared.update(taken=True)


async def never(things: Sequence[Thing]) -> None:
    await asyncio.Event().wait()


@in_virtual_time
async def test_what_was_sent_and_is_not_answered_in_time_may_have_happened() -> None:
    queue: SendQueue[Thing] = SendQueue("a", never, CONFIG, 1)
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + 3.0
    with pytest.raises(OutcomeUnknown):
        await queue.send(Thing(), deadline_s)
    assert loop.time() == pytest.approx(deadline_s)
    await queue.close()


@in_virtual_time
async def test_what_waits_behind_it_until_its_time_is_over_was_surely_not_sent() -> None:
    queue: SendQueue[Thing] = SendQueue("a", never, CONFIG, 1)
    deadline_s = asyncio.get_running_loop().time() + 3.0
    things = [Thing() for _ in range(4)]
    ends = await asyncio.gather(
        *(queue.send(thing, deadline_s) for thing in things), return_exceptions=True
    )
    assert isinstance(ends[0], OutcomeUnknown)
    assert all(isinstance(end, Overloaded) for end in ends[1:])
    assert [thing.sent for thing in things] == [True, False, False, False]
    await queue.close()


@pytest.mark.parametrize("fails", [True, False])
@in_virtual_time
async def test_what_waits_for_a_server_that_does_not_answer_hears_so_and_not_that_it_is_full(
    fails: bool,
) -> None:
    """It refuses connections, or has long been silent: who has waited in vain must not be told that it is merely busy."""

    async def refused(things: Sequence[Thing]) -> None:
        await asyncio.sleep(3.0)
        raise Unavailable("nothing listens there")

    queue: SendQueue[Thing] = SendQueue("a", refused if fails else never, CONFIG, 1)
    deadline_s = asyncio.get_running_loop().time() + 9.0
    ends = await asyncio.gather(
        *(queue.send(Thing(), deadline_s) for _ in range(6)), return_exceptions=True
    )
    unknown = [end for end in ends if isinstance(end, OutcomeUnknown)]
    assert len(unknown) == (0 if fails else 1)
    assert all(isinstance(end, Unavailable) for end in ends if end not in unknown)
    assert all("a does not answer" in str(end) for end in ends[-2:])
    await queue.close()
