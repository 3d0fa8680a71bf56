"""One stream, and what is heard on it of links that are leaving."""

from __future__ import annotations

import asyncio
from random import Random
from typing import cast

import pytest

from tests.unit.client.receiving.test_link import Formal
from utuple.client.config import Config
from utuple.client.receiving.link import Link
from utuple.client.receiving.session import Session
from utuple.client.routing.lines import Lines
from utuple.client.transport import Transport
from utuple.wire import utuple_pb2 as pb


@pytest.mark.parametrize(("by", "is_over"), [(6, False), (7, False), (8, True)])
async def test_a_goodbye_is_over_when_a_later_reader_has_the_formal_and_not_when_an_earlier_one_had_it(
    by: int, is_over: bool
) -> None:
    """Seed 4000453: the notice was of an attachment before, and the goodbye was never said."""
    nobody = cast(Transport, None), cast(Lines, None)
    session = Session("server-1", False, *nobody, Random(1), Config())
    link = Link(Formal(generation=7), "server-1", window=10, window_bytes=1_000)
    session._links[link.id] = link
    assert [message.attach.generation for message in link.outgoing()] == [7]
    link.leave(cancel=True)
    session._hear(pb.ToReader(replaced=pb.Replaced(id=link.id, generation=by)))
    assert link.gone.is_set() == is_over


@pytest.mark.parametrize("cancel", [True, False])
async def test_who_left_before_its_attach_was_answered_is_detached_as_it_had_left(
    cancel: bool,
) -> None:
    """The goodbye could not be said in time. A reader without a name is to be forgotten, not to live on for its lifetime."""
    nobody = cast(Transport, None), cast(Lines, None)
    session = Session("server-1", False, *nobody, Random(1), Config())
    link = Link(Formal(generation=7), "server-1", window=10, window_bytes=1_000)
    session._links[link.id], session._formals[link.id] = link, link.receiver.utuple
    for message in link.outgoing():
        session._await_answer(message, link)
    link.leave(cancel=cancel)
    session.drop(link)
    session._hear(pb.ToReader(attached=pb.Attached(id=link.id, generation=7)))
    (said,) = session._strays
    assert (said.detach.id, said.detach.generation, said.detach.cancel) == (link.id, 7, cancel)


async def test_thousands_that_detach_from_a_server_that_is_silent_are_one_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nobody = cast(Transport, None), cast(Lines, None)
    session = Session("server-1", False, *nobody, Random(1), Config(detach_s=0.001))
    links = [Link(Formal(generation=7), "server-1", window=10, window_bytes=1_000) for _ in "abc"]
    await asyncio.gather(*(session.say_goodbye(link, cancel=True) for link in links))
    links[0].gone.set()
    await session.say_goodbye(links[0], cancel=True)
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(" server")[0] for line in said] == [
        "detached without an answer",
        "detached with an answer again",
    ]
