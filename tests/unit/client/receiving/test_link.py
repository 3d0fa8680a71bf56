"""A link: what is said to a server, and how far it may run ahead."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.twins.virtual_time import in_virtual_time
from utuple.client.receiving.delivery import Chunk
from utuple.client.receiving.link import Link
from utuple.errors import UTupleError
from utuple.model.utuple import Family, Template, UTuple
from utuple.wire import utuple_pb2 as pb

WINDOW = 10
WINDOW_BYTES = 1_000_000


@dataclass
class Formal:
    """The plainest receiver: positions are what a test says."""

    utuple: UTuple = field(
        default_factory=lambda: UTuple(
            bytes(16), Family("truck", "load"), Template(), None, {}, 60.0, "dispatch"
        )
    )
    received: dict[str, int] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    generation: int = 7
    attempts: int = 0
    is_full: bool = False

    def arrive(self, link: Link, chunk: Chunk, rows: Sequence[int]) -> None: ...

    def resume_after(self, link: Link) -> dict[str, int] | None:
        return self.received

    def acknowledged(self, link: Link) -> dict[str, int]:
        return self.done

    def settlements(self, server: str) -> Sequence[pb.Settle]:
        return ()

    def pace(self, link: Link) -> pb.Pace | None:
        return None

    def dropped(self, message: pb.Dropped) -> None: ...

    def unknown_at(self, link: Link) -> None: ...

    def next_attempt(self) -> int:
        self.attempts += 1
        return self.attempts

    def replaced(self, generation: int) -> None: ...

    def fail(self, error: UTupleError) -> None: ...


def said(link: Link) -> list[str]:
    return [message.WhichOneof("message") or "" for message in link.outgoing()]


def up(formal: Formal | None = None) -> Link:
    link = Link(formal or Formal(), "a", WINDOW, WINDOW_BYTES)
    assert said(link) == ["attach"]
    link.attached(unknown=False)
    return link


@in_virtual_time
async def test_what_is_taken_is_given_back_by_the_half_window() -> None:
    link = up()
    link.delivered(rows=WINDOW, repeats=0)
    assert [link.took(1) for _ in range(5)] == [False] * 4 + [True]
    assert said(link) == ["taken"]


@in_virtual_time
async def test_a_link_that_broke_is_attached_again_when_half_of_what_came_is_taken() -> None:
    link = up()
    link.delivered(rows=8, repeats=0)
    link.lost()
    assert said(link) == []
    assert [link.took(1) for _ in range(3)] == [False, False, True]
    assert said(link) == ["attach"]


@in_virtual_time
async def test_what_comes_before_the_answer_to_an_attach_belongs_to_the_window_before() -> None:
    """The server counts from the Attach: told of more, it would send more than a window."""
    link = up()
    link.attach_again()
    assert said(link) == ["attach"]
    link.delivered(rows=5, repeats=5)
    link.attached(unknown=False)
    assert not any(link.took(1) for _ in range(5))
    assert said(link) == []


@in_virtual_time
async def test_a_link_that_leaves_says_so_however_full_it_is() -> None:
    formal = Formal()
    link = up(formal)
    link.delivered(rows=WINDOW, repeats=0)
    link.lost()
    formal.done = {"a": 3}
    link.leave(cancel=True)
    assert said(link) == ["attach"]
    link.attached(unknown=False)
    assert link.acknowledging() == [("a", 3)]
    assert said(link) == ["detach"]


@in_virtual_time
async def test_a_position_is_told_once_and_again_after_the_stream_broke() -> None:
    formal = Formal(done={"a": 3, "x": 7})
    link = up(formal)
    assert link.acknowledging() == [("a", 3), ("x", 7)]
    assert link.acknowledging() == []
    formal.done = {"a": 4, "x": 7}
    assert link.acknowledging() == [("a", 4)]
    link.lost()
    assert link.acknowledging() == [], "before it is attached the server does not listen"
    assert said(link) == ["attach"]
    link.attached(unknown=False)
    assert link.acknowledging() == [("a", 4), ("x", 7)]


@in_virtual_time
async def test_a_link_knows_whether_attaching_again_would_say_more() -> None:
    formal = Formal(received={"a": 5, "x": 3})
    link = up(formal)
    assert not link.would_say_more({"a": 9, "x": 3}, {"x"})
    assert link.would_say_more({"a": 5, "x": 4}, {"x"})


@in_virtual_time
async def test_a_link_is_settled_when_it_is_up_or_gone() -> None:
    link = Link(Formal(), "a", WINDOW, WINDOW_BYTES)
    waiting = asyncio.create_task(link.settled())
    await asyncio.sleep(1)
    assert not waiting.done()
    link.gone.set()
    await waiting
    await up().settled()


def test_each_attachment_has_a_higher_number_than_the_one_before() -> None:
    link = Link(Formal(), "server-1", window=10, window_bytes=1_000)
    first = [message.attach.attempt for message in link.outgoing()]
    link.lost()
    assert [message.attach.attempt for message in link.outgoing()] == [first[0] + 1]
