"""Two programs that open one reader at several servers: all servers agree on who has it, whatever came first."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from utuple.delivery.attachments import Attachments

FORMAL, OTHER = b"f" * 16, b"g" * 16
Opening = tuple[str, int]
"""A stream, and the generation of its attachment."""


def ask(held: Attachments[str], opening: Opening) -> None:
    """As a server does."""
    stream, generation = opening
    if held.later_than(FORMAL, generation) is None:
        held.attach(FORMAL, stream, generation)


openings = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(1, 50)),
    min_size=1,
    max_size=4,
    unique_by=lambda opening: opening[1],
)


@given(openings)
def test_in_whatever_order_they_come_the_latest_generation_holds_the_formal(
    asked: list[Opening],
) -> None:
    last = max(asked, key=lambda opening: opening[1])
    for order in permutations(asked):
        held: Attachments[str] = Attachments()
        for opening in order:
            ask(held, opening)
        assert held.is_by(FORMAL, *last)
        for opening in asked:
            assert held.may_end(FORMAL, *opening) is (opening == last), "the others have no say"
        assert held.on(last[0]) == [FORMAL]
        assert sum(held.count(stream) for stream in "ABC") == 1


def test_what_was_said_on_a_stream_that_broke_does_not_move_the_formal_back_to_it() -> None:
    """Seed 3400042: the old words were read after the new ones, and the reader was silent for good."""
    held: Attachments[str] = Attachments()
    held.attach(FORMAL, "new", 7, attempt=2)
    assert held.is_outdated(FORMAL, 7, attempt=1)
    assert not held.is_outdated(FORMAL, 7, attempt=2), "the same words again"
    assert not held.is_outdated(FORMAL, 7, attempt=3)
    assert not held.is_outdated(FORMAL, 8, attempt=1), "another opening"
    assert not held.is_outdated(OTHER, 7, attempt=1)
    held.close("new")
    assert not held.is_outdated(FORMAL, 7, attempt=1), "nobody holds it"


def test_the_stream_that_held_it_before_is_named_once_and_only_if_it_is_another() -> None:
    held: Attachments[str] = Attachments()
    assert held.attach(FORMAL, "A", 1) is None
    assert held.attach(FORMAL, "A", 2) is None
    assert held.attach(FORMAL, "B", 3) == "A"
    assert held.close("A") == [], "nothing that another holds by now"
    assert held.is_by(FORMAL, "B", 3)


def test_of_a_formal_that_nobody_holds_everyone_may_say_that_it_ends() -> None:
    held: Attachments[str] = Attachments()
    held.attach(FORMAL, "A", 7)
    assert held.detach(FORMAL) == "A" and held.detach(FORMAL) is None
    assert held.may_end(FORMAL, "B", 1) and held.later_than(FORMAL, 1) is None


def test_a_stream_that_ends_gives_up_what_it_holds_in_the_order_it_came() -> None:
    held: Attachments[str] = Attachments()
    held.attach(OTHER, "A", 1)
    held.attach(FORMAL, "A", 1)
    assert held.close("A") == [OTHER, FORMAL]
    assert FORMAL not in held and list(held) == []
