"""What a program has in hand, where each delivery is settled by itself."""

from __future__ import annotations

from array import array

from tests.unit.client.receiving.test_delivery import EVENTS
from utuple.client.receiving.delivery import Chunk
from utuple.client.receiving.hands import Hands
from utuple.model.columns import columns_of

FORMAL = b"f" * 16


def chunk(server: str = "A", origin: str = "A") -> Chunk:
    return Chunk(columns_of(EVENTS[:3]), server, origin, stored=True, seqs=array("Q", [5, 6, 7]))


def words(hands: Hands, server: str = "A") -> list[tuple[str, list[int], list[int], float]]:
    return [
        (w.origin, list(array("Q", w.done)), list(array("Q", w.refused)), w.after_s)
        for w in hands.words(server)
    ]


def test_what_is_acknowledged_and_what_is_refused_is_said_once_to_whoever_gave_it() -> None:
    hands, came = Hands(FORMAL, 10.0), chunk()
    assert hands.arrive(came, range(3), 0.0) == [0, 1, 2]
    hands.hand_out(came.ids, 0.0)
    assert hands.settle(came.ids[0], None) and hands.settle(came.ids[2], 1.5)
    assert words(hands) == [("A", [5], [], 0.0), ("A", [], [7], 1.5)]
    assert words(hands) == [] and not hands.settle(came.ids[0], None)


def test_what_comes_again_while_it_is_in_hand_is_not_handed_out_again() -> None:
    hands, came = Hands(FORMAL, 10.0), chunk()
    hands.arrive(came, range(3), 0.0)
    assert hands.arrive(chunk(), range(3), 0.0) == [], "it is queued"
    hands.hand_out(came.ids[:2], 0.0)
    assert hands.arrive(chunk(), range(3), 9.9) == [], "it is in hand, and not for too long"
    assert hands.arrive(chunk(), range(3), 10.0) == [0, 1], "the program has had it too long"


def test_what_was_acknowledged_and_comes_again_is_settled_again_where_it_came_from() -> None:
    hands, came = Hands(FORMAL, 10.0), chunk()
    hands.arrive(came, range(1), 0.0)
    hands.hand_out(came.ids[:1], 0.0)
    hands.settle(came.ids[0], None)
    words(hands)
    assert hands.arrive(chunk("heir"), range(1), 99.0) == []
    assert words(hands, "heir") == [("A", [5], [], 0.0)]


def test_what_was_refused_is_handed_out_again() -> None:
    hands, came = Hands(FORMAL, 10.0), chunk()
    hands.arrive(came, range(1), 0.0)
    hands.hand_out(came.ids[:1], 0.0)
    hands.settle(came.ids[0], 0.0)
    assert hands.arrive(chunk(), range(1), 0.1) == [0]


def test_one_of_lifetime_0_has_no_place_and_nothing_is_said_of_it() -> None:
    hands = Hands(FORMAL, 10.0)
    came = Chunk(columns_of(EVENTS[:1]), "A", "A", stored=False)
    assert hands.arrive(came, range(1), 0.0) == [0]
    hands.hand_out(came.ids, 0.0)
    assert hands.settle(came.ids[0], None) and words(hands) == []
