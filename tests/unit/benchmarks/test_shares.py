"""`utuple bench shares`: what counts as false, and as late."""

from __future__ import annotations

from benchmarks.shares.comparing import Change, Told, compare, in_words

CHANGES = [Change("add", 100.0), Change("kill sca-1", 109.0)]


def told(began_s: float, word: str, number: int = 1, took_s: float = 0.1) -> Told:
    return Told(number, began_s, began_s + took_s, word)


def test_a_denial_is_late_if_it_came_in_the_calm() -> None:
    calm, early, overtaken = 105.5, 104.0, 108.9
    for began_s, late in ((calm, 1), (early, 0), (overtaken, 0)):
        found = compare([told(began_s, "not connected", took_s=0.2)], {}, CHANGES)
        assert (found["wrong_late"], found["wrong"], found["false_receipts"]) == (late, 1, 0)


def test_a_receipt_is_false_if_the_device_knows_better() -> None:
    assert compare([told(1.0, "handed over")], {}, CHANGES)["false_receipts"] == 1
    assert compare([told(1.0, "handed over")], {1: 1}, CHANGES)["false_receipts"] == 0
    assert compare([told(1.0, "not registered: gone")], {1: 1}, CHANGES)["false_receipts"] == 1
    assert compare([told(1.0, "not confirmed")], {1: 2}, CHANGES)["given_twice"] == 1


def test_what_was_not_handed_over_is_told_with_its_words_and_when() -> None:
    answers = [
        told(101.0, "not registered: no sCA server", took_s=2.0),
        told(102.5, "not registered: no sCA server"),
        told(115.0, "not connected"),
        told(115.0, "handed over"),
    ]
    assert list(in_words(answers, CHANGES)) == [
        "2 × not registered, sent 1.0 to 2.5 s after add, answered after 2.0 s at most: no sCA server",
        "1 × not connected (late), sent 6.0 to 6.0 s after kill sca-1, answered after 0.1 s at most",
    ]
