"""What a learner has promised: kept as long as it is owed, and never given by who is being emptied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from utuple.cluster.layout import Axis, Layout
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.server.moving.notes import KeptNotes, Received, Shipment
from utuple.server.moving.participant import Participant
from utuple.server.moving.steps import Promise
from utuple.server.writing.lines import OwnLines
from utuple.server.writing.transaction import Draft

SPLIT, HELP, DRAIN = (bytes([number]) * 16 for number in (1, 2, 3))
MIDDLE = HASH_SPACE // 2
LOWER, UPPER = Section(0, MIDDLE), Section(MIDDLE, HASH_SPACE)
ON, OFF = True, False
SERVERS = (ServerInfo("a", "a:1", "server", 1), ServerInfo("b", "b:1", "server", 1))


def line(section: Section, epoch: int, **members: bool) -> Line:
    return Line(section, epoch, tuple(Member(name, on) for name, on in members.items()))


@pytest.fixture
def learner() -> Participant:
    return Participant("b", OwnLines("b", [], []), KeptNotes())


def promise(learner: Participant, id_: bytes, *lines: Line) -> bool:
    return learner.promise(Promise(id_, lines, SERVERS, None, None), Draft()).done


def test_a_later_move_of_one_half_leaves_the_promise_of_the_other_half(
    learner: Participant,
) -> None:
    after_split = (line(LOWER, 2, a=ON), line(UPPER, 2, a=OFF, b=ON))
    assert promise(learner, SPLIT, *after_split)
    helped = line(LOWER, 3, a=OFF, b=ON)
    assert promise(learner, HELP, helped)
    assert learner.hear((helped,), SERVERS, Draft()).done
    assert learner.hear(after_split, SERVERS, Draft()).done, "it has promised the upper half, too"
    assert not learner.promises


def test_a_promise_is_over_when_its_section_was_split_and_both_halves_were_heard_of(
    learner: Participant,
) -> None:
    assert promise(learner, HELP, line(Section(0, HASH_SPACE), 2, a=ON, b=ON))
    halves = (line(LOWER, 3, a=ON, b=ON), line(UPPER, 3, a=ON, b=ON))
    assert learner.hear(halves[:1], SERVERS, Draft()).done and learner.promises
    assert learner.hear(halves[1:], SERVERS, Draft()).done and not learner.promises


@pytest.mark.parametrize("is_settled", [False, True])
def test_who_is_being_emptied_of_a_section_does_not_promise_to_serve_it(
    learner: Participant, is_settled: bool
) -> None:
    """At the end it deletes everything it has of the section, also what came by the new line."""
    learner.shipments[DRAIN] = Shipment(UPPER, "a", is_settled)
    refused = learner.promise(
        Promise(HELP, (line(UPPER, 4, a=ON, b=ON),), SERVERS, None, None), Draft()
    )
    assert not refused.done and refused.never and "drained" in refused.reason
    assert promise(learner, HELP, line(LOWER, 2, a=ON, b=ON))


def test_who_is_leaving_joins_no_other_line_but_learns_what_it_missed_in_its_own(
    learner: Participant,
) -> None:
    """Seed 28000230: elasticity removed a server that an operator had made a helper again meanwhile."""
    learner.leave(Draft(), stay=False)
    asked = Promise(HELP, (line(UPPER, 2, a=ON, b=ON),), SERVERS, None, None)
    refused = learner.promise(asked, Draft())
    assert not refused.done and refused.never and refused.reason == "b is leaving"
    returning = Participant(
        "b", OwnLines("b", [line(UPPER, 1, a=ON, b=OFF)], []), KeptNotes(leaving=True)
    )
    assert promise(returning, HELP, line(UPPER, 2, a=ON, b=ON))
    learner.leave(Draft(), stay=True)
    assert promise(learner, HELP, line(UPPER, 2, a=ON, b=ON))


@pytest.fixture
def heir() -> Participant:
    """b holds shadows of a's uTuples, and is ready for the epoch in which a is gone and c is home."""
    heir = Participant("b", OwnLines("b", [line(UPPER, 3, a=OFF, b=ON, c=ON)], []), KeptNotes())
    heir.received[DRAIN] = Received({"a": 7}, 7)
    assert promise(heir, DRAIN, line(UPPER, 4, c=ON, b=ON))
    return heir


def test_an_heir_waits_for_the_word_that_its_shadows_count(heir: Participant) -> None:
    """Seed 502206: the drained home's word came after the next home's, by which the heir was emptied in turn; the
    shadows stayed behind."""
    later = line(UPPER, 5, c=ON, b=OFF)
    refused = heir.hear((later,), SERVERS, Draft())
    assert not refused.done and "not ready" in refused.reason
    assert heir.hear((line(LOWER, 9, c=ON),), SERVERS, Draft()).done, "another section"
    assert heir.hear((line(UPPER, 4, c=ON, b=ON),), SERVERS, Draft(), settled=[DRAIN]).done
    assert heir.hear((later,), SERVERS, Draft()).done


def test_an_heir_goes_on_when_the_drain_was_given_up(heir: Participant) -> None:
    other = line(UPPER, 4, a=ON, b=ON, c=ON)
    assert not heir.hear((other,), SERVERS, Draft()).done
    heir.forget(DRAIN, Draft())
    assert heir.hear((other,), SERVERS, Draft()).done


def test_who_kept_its_share_of_a_partitioned_line_serves_no_more_of_it_without_having_learned() -> (
    None
):
    """Law 7, also if it did not hear of the epoch in between in which it was off."""
    mine, more = (
        Layout((Axis("lat", (0,), (("a", "b"), owners)),)) for owners in (("a",), ("a", "b"))
    )
    whole = Section(0, HASH_SPACE)
    own = replace(line(whole, 4, a=ON, b=ON), layout=mine)
    member = Participant("b", OwnLines("b", [own], []), KeptNotes())
    for later in (line(whole, 7, a=ON, b=ON), replace(own, epoch=7, layout=more)):
        assert not member.hear((later,), SERVERS, Draft()).done
    same = replace(own, epoch=5, members=(*own.members, Member("c")))
    assert member.hear((same,), SERVERS, Draft()).done
    helped = line(whole, 7, a=ON, b=ON)
    assert promise(member, HELP, helped)
    assert member.hear((helped,), SERVERS, Draft()).done
