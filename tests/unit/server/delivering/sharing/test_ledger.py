"""The ledger of a reader that settles each delivery by itself: whoever has it, it is settled, comes again, or is parked."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.model.terms import Terms
from utuple.server.delivering.sharing.ledger import LEAST_WINDOW, MOST_WINDOW, Ledger

TERMS = Terms(share=True, ack_within_s=10.0, attempts=3)


def ledger(*seats: int, terms: Terms = TERMS) -> Ledger:
    made = Ledger(terms)
    for stream in seats:
        made.sit(stream, generation=0)
    return made


def rows(*seqs: int) -> list[tuple[int, str]]:
    return [(seq, f"truck-{seq}") for seq in seqs]


def test_each_delivery_goes_to_one_seat_and_those_with_room_come_first() -> None:
    shared = ledger(1, 2)
    given_ = shared.assign("", rows(*range(1, 11)), 0.0)
    assert sorted(given_[1] + given_[2]) == list(range(10))
    assert len(given_[1]) == len(given_[2]) == 5


def test_what_a_seat_had_that_broke_off_is_due_for_the_others_and_only_what_it_had_begun_was_tried() -> (
    None
):
    shared = ledger(1)
    shared.assign("", rows(1, 2, 3, 4), 0.0)
    shared.begin(1, 2, 0.0)
    shared.leave(1, 5.0, 0, orderly=False)
    shared.sit(2, 0)
    assert shared.due(5.0) == {"": [1, 2, 3, 4]}
    assert [shared.open["", seq].attempts for seq in (1, 2, 3, 4)] == [1, 1, 0, 0]


def test_if_nothing_is_known_to_be_begun_the_first_was() -> None:
    shared = ledger(1)
    shared.assign("", rows(1, 2), 0.0)
    shared.leave(1, 5.0, 0, orderly=False)
    assert [shared.open["", seq].attempts for seq in (1, 2)] == [1, 0]


def test_deliveries_of_lifetime_0_take_room_until_they_are_taken_and_are_never_open() -> None:
    shared = ledger(1)
    given_ = shared.assign_fleeting([f"truck-{number}" for number in range(LEAST_WINDOW)])
    assert given_ == {1: list(range(LEAST_WINDOW))}
    assert shared.seats[1].room == 0
    assert shared.begin(1, 3, 0.0), "there is room again"
    assert shared.seats[1].room == 3
    assert not shared.open and not shared.changed


def test_what_is_taken_is_counted_in_the_order_of_sending_whatever_its_lifetime() -> None:
    shared = ledger(1)
    shared.assign("", rows(1), 0.0)
    shared.assign_fleeting(["truck-2", "truck-3"])
    shared.assign("", rows(4), 0.0)
    assert shared.begin(1, 2, 1.0)
    assert [shared.open["", seq].begun_s for seq in (1, 4)] == [1.0, None]
    shared.leave(1, 5.0, 0, orderly=False)
    assert [shared.open["", seq].attempts for seq in (1, 4)] == [1, 0], "nobody had begun the last"


def test_a_late_acknowledgement_concerns_nothing_of_lifetime_0() -> None:
    shared = ledger(1)
    shared.assign_fleeting(["truck-1"])
    shared.tick(100.0, 0)
    shared.leave(1, 100.0, 0, orderly=False)
    assert not shared.open and not shared.parked


def test_nobody_is_there_and_nobody_gets_what_has_lifetime_0() -> None:
    assert ledger().assign_fleeting(["truck-1"]) == {}


def test_an_orderly_goodbye_is_no_attempt() -> None:
    shared = ledger(1)
    shared.assign("", rows(1, 2), 0.0)
    shared.begin(1, 2, 0.0)
    shared.leave(1, 5.0, 0, orderly=True)
    assert [one.attempts for one in shared.open.values()] == [0, 0]


def test_what_is_begun_and_not_acknowledged_in_time_comes_again_and_what_is_not_begun_waits() -> (
    None
):
    shared = ledger(1)
    shared.assign("", rows(1, 2), 0.0)
    shared.begin(1, 1, 3.0)
    assert not shared.tick(12.9, 0)
    assert shared.due(12.9) == {}
    assert shared.tick(13.0, 0), "somebody has to look for more"
    assert shared.due(13.0) == {"": [1]} and shared.open["", 1].attempts == 1


def test_what_is_refused_comes_again_after_the_time_that_was_said() -> None:
    shared = ledger(1, 2)
    (mine,) = [stream for stream, got in shared.assign("", rows(1), 0.0).items() if got]
    shared.refuse(3 - mine, "", [1], 5.0, 1.0, 0)
    assert shared.open["", 1].seat == mine, "only who has it may refuse it"
    shared.refuse(mine, "", [1], 5.0, 1.0, 0)
    assert shared.due(5.9) == {} and shared.due(6.0) == {"": [1]} and shared.next_due_s() == 6.0


def test_after_so_many_attempts_it_is_parked_and_the_position_passes_it() -> None:
    shared = ledger(1)
    shared.assign("", rows(1, 2), 0.0)
    shared.settle("", [2], 0.0)
    for attempt in range(3):
        assert shared.position("") == 0
        if attempt:
            shared.assign("", rows(1), 0.0)
        shared.refuse(1, "", [1], 0.0, 0.0, 77)
    assert shared.position("") == 2 and not shared.open
    (parked,) = shared.parked.values()
    assert (parked.attempts, parked.parked_us) == (3, 77) and "refused" in parked.reason
    assert shared.unpark([("", 1), ("", 2)], 0.0, again=True) == [("", 1)]
    assert shared.due(0.0) == {"": [1]} and shared.open["", 1].attempts == 0
    assert shared.position("") == 0


def test_a_parked_one_that_is_dropped_is_gone() -> None:
    shared = ledger(1)
    shared.assign("", rows(1), 0.0)
    for _ in range(3):
        shared.refuse(1, "", [1], 0.0, 0.0, 0)
        shared.assign("", rows(1), 0.0) if shared.open else None
    assert shared.unpark([("", 1)], 0.0, again=False) == [("", 1)]
    assert not shared.parked and not shared.open


def test_positions_are_by_origin() -> None:
    shared = ledger(1)
    shared.assign("", rows(5, 6), 0.0)
    shared.assign("X", rows(3, 9), 0.0)
    shared.settle("X", [3], 0.0)
    shared.settle("", [6], 0.0)
    assert (shared.position(""), shared.position("X")) == (4, 8)
    shared.settle("", [5], 0.0)
    assert (shared.position(""), shared.position("X")) == (6, 8)


def test_an_acknowledgement_counts_once_whoever_says_it() -> None:
    shared = ledger(1)
    shared.assign("", rows(1), 0.0)
    assert shared.settle("", [1, 99], 0.0) == 1, "99 was never delivered"
    assert shared.settle("", [1], 0.0) == 0


def test_of_one_address_all_goes_to_the_same_seat_while_it_is_there() -> None:
    shared = ledger(1, 2, 3, terms=Terms(share=True, sticky=True))
    place: dict[str, int] = {}
    for seq in range(1, 100):
        (stream,) = shared.assign("", [(seq, f"truck-{seq % 10}")], 0.0)
        assert place.setdefault(f"truck-{seq % 10}", stream) == stream
    assert len(set(place.values())) > 1
    shared.leave(1, 0.0, 0, orderly=True)
    for address, stream in place.items():
        (now,) = shared.assign("", [(1_000, address)], 0.0)
        shared.settle("", [1_000], 0.0)
        assert now == stream or stream == 1, "only those of the seat that went go elsewhere"


def test_a_prompt_seat_is_given_more_and_a_slow_one_less() -> None:
    shared = ledger(1)
    for seq in range(1, 3_000):
        shared.assign("", rows(seq), 0.0)
        shared.settle("", [seq], 0.1)
    assert shared.seats[1].window == MOST_WINDOW
    for seq in range(3_000, 3_010):
        shared.assign("", rows(seq), 0.0)
        shared.settle("", [seq], 5.0)
    assert shared.seats[1].window == LEAST_WINDOW


def test_what_is_open_and_parked_comes_back_from_the_notes() -> None:
    shared = ledger(1)
    shared.assign("", rows(1, 2, 3), 0.0)
    shared.settle("", [2], 0.0)
    for _ in range(3):
        shared.refuse(1, "", [3], 0.0, 0.0, 5)
        if ("", 3) in shared.open:
            shared.assign("", rows(3), 0.0)
    again = Ledger(TERMS)
    again.restore("", shared.encode(""))
    again.sit(7, 0)
    assert again.upto == {"": 3} and again.due(0.0) == {"": [1]}
    assert again.parked == shared.parked and again.position("") == 0


@given(st.randoms(), st.integers(1, 4))
def test_nothing_is_ever_lost(dice: Random, seats: int) -> None:
    """Whatever seats do: what was handed out is open, settled or parked, and held by one seat at most."""
    shared, now_s, done, sent = ledger(*range(seats)), 0.0, set(), 0
    for _ in range(60):
        now_s += dice.random() * 4
        match dice.randrange(7):
            case 0:
                shared.assign("", rows(*range(sent + 1, sent + 4)), now_s)
                sent += 3
            case 1 if shared.seats:
                shared.leave(dice.choice(list(shared.seats)), now_s, 0, orderly=dice.random() < 0.5)
            case 2:
                shared.sit(dice.randrange(10), 0)
            case 3:
                for seat in shared.seats.values():
                    shared.begin(seat.stream, dice.randrange(3), now_s)
            case 4 if shared.open:
                seq = dice.choice([seq for _, seq in shared.open])
                done.add(seq)
                shared.settle("", [seq], now_s)
            case 5:
                for seat in list(shared.seats.values()):
                    shared.refuse(seat.stream, "", [s for _, s in seat.held][:1], 1.0, now_s, 0)
            case 6:
                shared.tick(now_s, 0)
                for seqs in shared.due(now_s).values():
                    shared.assign("", rows(*seqs), now_s)
        held = [place for seat in shared.seats.values() for place in seat.held]
        assert len(held) == len(set(held))
        states = [{seq for _, seq in shared.open}, {seq for _, seq in shared.parked}, done]
        assert set().union(*states) == set(range(1, sent + 1))
        assert sum(map(len, states)) == sent
        assert shared.position("") < min((seq for _, seq in shared.open), default=sent + 1)


def test_terms_without_numbers_have_the_default_ones() -> None:
    terms = Terms(share=True)
    assert (terms.redelivered_after_s, terms.most_attempts) == (60.0, 5)
    assert Terms(attempts=2).settles and not Terms().settles


@pytest.mark.parametrize("count", [0, 5])
def test_more_is_begun_than_there_is(count: int) -> None:
    shared = ledger(1)
    shared.begin(1, count, 0.0)
    shared.begin(9, count, 0.0)
    assert not shared.open
