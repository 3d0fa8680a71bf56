"""What a learner has promised: kept as long as it is owed, and never given by who is being emptied."""

from __future__ import annotations

import pytest

from utuple.cluster.line import Line, Member, ServerInfo
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.server.lines import OwnLines
from utuple.server.moving import Moving
from utuple.server.steps import Promise, Shipment
from utuple.server.tally import Tally

SPLIT, HELP, DRAIN = (bytes([number]) * 16 for number in (1, 2, 3))
MIDDLE = HASH_SPACE // 2
LOWER, UPPER = Section(0, MIDDLE), Section(MIDDLE, HASH_SPACE)
ON, OFF = True, False
SERVERS = (ServerInfo("a", "a:1", "server", 1), ServerInfo("b", "b:1", "server", 1))


def line(section: Section, epoch: int, **members: bool) -> Line:
    return Line(section, epoch, tuple(Member(name, on) for name, on in members.items()))


@pytest.fixture
def learner() -> Moving:
    return Moving("b", OwnLines("b", [], []), {})


def promise(learner: Moving, id_: bytes, *lines: Line) -> bool:
    return learner.promise(Promise(id_, lines, SERVERS, None, None), Tally()).done


def test_a_later_move_of_one_half_leaves_the_promise_of_the_other_half(learner: Moving) -> None:
    after_split = (line(LOWER, 2, a=ON), line(UPPER, 2, a=OFF, b=ON))
    assert promise(learner, SPLIT, *after_split)
    helped = line(LOWER, 3, a=OFF, b=ON)
    assert promise(learner, HELP, helped)
    assert learner.hear((helped,), SERVERS, Tally()).done
    assert learner.hear(after_split, SERVERS, Tally()).done, "it has promised the upper half, too"
    assert not learner.promises


def test_a_promise_is_over_when_its_section_was_split_and_both_halves_were_heard_of(
    learner: Moving,
) -> None:
    assert promise(learner, HELP, line(Section(0, HASH_SPACE), 2, a=ON, b=ON))
    halves = (line(LOWER, 3, a=ON, b=ON), line(UPPER, 3, a=ON, b=ON))
    assert learner.hear(halves[:1], SERVERS, Tally()).done and learner.promises
    assert learner.hear(halves[1:], SERVERS, Tally()).done and not learner.promises


@pytest.mark.parametrize("is_settled", [False, True])
def test_who_is_being_emptied_of_a_section_does_not_promise_to_serve_it(
    learner: Moving, is_settled: bool
) -> None:
    """At the end it deletes everything it has of the section, also what came by the new line."""
    learner.shipments[DRAIN] = Shipment(UPPER, "a", is_settled)
    refused = learner.promise(
        Promise(HELP, (line(UPPER, 4, a=ON, b=ON),), SERVERS, None, None), Tally()
    )
    assert not refused.done and refused.never and "drained" in refused.reason
    assert promise(learner, HELP, line(LOWER, 2, a=ON, b=ON))
