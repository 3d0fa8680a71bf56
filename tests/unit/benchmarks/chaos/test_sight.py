"""Which lines a server surely holds, by what it says of itself."""

from __future__ import annotations

import pytest

from benchmarks.chaos.sight import durable
from utuple.wire import utuple_pb2 as pb


def line(epoch: int) -> pb.Line:
    return pb.Line(start=0, last=9, epoch=epoch, members=[pb.Member(name="a")])


def status(registered: int, *epochs: int, since_us: int = 1) -> pb.ServerStatus:
    return pb.ServerStatus(
        since_us=since_us, registered=registered, lines=[line(epoch) for epoch in epochs]
    )


def test_a_line_shown_before_and_after_something_was_registered_is_committed() -> None:
    assert durable(status(10, 2), status(11, 2)) == [line(2)]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (None, status(11, 2)),
        (status(10, 1), status(11, 2)),
        (status(10, 2), status(10, 2)),
        (status(10, 2), status(11, 2, since_us=2)),
    ],
    ids=["first seen", "new", "nothing was committed since", "another life"],
)
def test_a_line_that_may_be_on_its_way_to_the_store_is_not(
    before: pb.ServerStatus | None, now: pb.ServerStatus
) -> None:
    assert durable(before, now) == []
