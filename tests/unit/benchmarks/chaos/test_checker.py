"""The checker finds each kind of violation, and none in a history that keeps the laws."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.chaos.checker import History, Outcome, Verdict, check
from utuple.cluster.line import Line, Member
from utuple.model.condition import DataCondition, at_least
from utuple.model.section import Section
from utuple.model.utuple import Exact, Family, Template, UTuple

FAMILY = Family("truck", "load")
OTHER = Family("truck", "speed")
S = 1_000_000
END = 1_000 * S


def ea(number: int, kg: int = 1, lifetime_s: float = 10_000.0, family: Family = FAMILY) -> UTuple:
    return UTuple(
        number.to_bytes(16, "big"), family, Exact("a", number), {"kg": kg}, None, lifetime_s
    )


def ef(number: int, least: int = 0, family: Family = FAMILY) -> UTuple:
    where: dict[str, DataCondition] = {"kg": at_least(least)}
    return UTuple(number.to_bytes(16, "big"), family, Template(), None, where, 60.0, "reader")


def cf(number: int) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Exact("room", 1), None, {}, 60.0, "reader")


def ca(number: int, lifetime_s: float = 10_000.0) -> UTuple:
    return UTuple(number.to_bytes(16, "big"), FAMILY, Template(), {"on": True}, None, lifetime_s)


def sound() -> History:
    """Two events, two watches, a device and a command; all is well."""
    history = History()
    history.watch_opened("w1", ef(100), 1 * S, 2 * S)
    history.watch_opened("w2", ef(101, least=5), 1 * S, 2 * S)
    history.emitted(ea(1), 3 * S, 4 * S, Outcome.OK)
    history.emitted(ea(2, kg=9), 5 * S, 6 * S, Outcome.OK)
    for label, number in (("w1", 1), ("w1", 2), ("w2", 2)):
        history.delivered(label, ea(number).id, 7 * S)
    history.served("d1", cf(200), 1 * S, 2 * S)
    history.commanded(ca(201), 3 * S, 4 * S, Outcome.OK, handed=["d1"])
    history.command_delivered("d1", ca(201).id, 4 * S)
    history.read_back(FAMILY, [ea(1).id, ea(2).id], 900 * S)
    return history


def verdict(history: History, calm_us: int = 0) -> Verdict:
    return check(history, END, calm_us=calm_us, settle_s=10.0, drift_s=1.0)


def kinds(history: History, calm_us: int = 0) -> set[str]:
    return set(verdict(history, calm_us).findings)


def test_a_history_that_keeps_the_laws_is_clean() -> None:
    found = verdict(sound())
    assert found.is_clean
    assert (found.registered, found.expected, found.delivered) == (3, 4, 4)


def test_an_event_that_never_came_is_missed() -> None:
    history = sound()
    history.emitted(ea(3), 5 * S, 6 * S, Outcome.OK)
    history.read_back(FAMILY, [ea(n).id for n in (1, 2, 3)], 900 * S)
    found = verdict(history)
    assert [(one.where, one.id) for one in found.missed] == [("w1", ea(3).id)]


def stored_before_it_was_watched(history: History) -> None:
    history.emitted(ea(3), 5 * S, 6 * S, Outcome.OK)
    history.delivered("w1", ea(3).id, 7 * S)
    history.watch_opened("late", ef(102), 500 * S, 501 * S)
    for number in (1, 2):
        history.delivered("late", ea(number).id, 502 * S)


def while_its_reader_was_away(history: History) -> None:
    history.watch_closed("w1", 8 * S)
    history.emitted(ea(3), 100 * S, 101 * S, Outcome.OK)
    history.watch_opened("w1", ef(100), 200 * S, 201 * S)


def a_command_that_lives_on(history: History) -> None:
    history.commanded(ca(202), 5 * S, 6 * S, Outcome.OK)


def a_receipt_that_is_not_true(history: History) -> None:
    history.commanded(ca(202, lifetime_s=0.0), 5 * S, 6 * S, Outcome.OK, handed=["d1"])


@pytest.mark.parametrize(
    "happens",
    [
        stored_before_it_was_watched,
        while_its_reader_was_away,
        a_command_that_lives_on,
        a_receipt_that_is_not_true,
    ],
)
def test_missed_is_also(happens: Callable[[History], None]) -> None:
    history = sound()
    happens(history)
    assert len(verdict(history).missed) == 1


def of_lifetime_zero(history: History) -> None:
    history.emitted(ea(3, lifetime_s=0.0), 5 * S, 6 * S, Outcome.OK)


def expired_before_it_could_settle(history: History) -> None:
    history.emitted(ea(3, lifetime_s=10.0), 5 * S, 6 * S, Outcome.OK)


def closed_before_it_could_settle(history: History) -> None:
    history.watch_closed("w1", 60 * S)
    history.watch_closed("w2", 60 * S)
    history.emitted(ea(3, kg=9), 51 * S, 52 * S, Outcome.OK)
    history.read_back(FAMILY, [ea(n).id for n in (1, 2, 3)], 950 * S)


def too_late_to_settle(history: History) -> None:
    history.emitted(ea(3), END - 6 * S, END - 5 * S, Outcome.OK)


def of_unknown_outcome(history: History) -> None:
    history.emitted(ea(3), 5 * S, 6 * S, Outcome.UNKNOWN)


def of_another_family(history: History) -> None:
    history.emitted(ea(3, family=OTHER), 5 * S, 6 * S, Outcome.OK)


def a_command_of_lifetime_zero(history: History) -> None:
    history.commanded(ca(202, lifetime_s=0.0), 5 * S, 6 * S, Outcome.OK)


@pytest.mark.parametrize(
    "happens",
    [
        of_lifetime_zero,
        expired_before_it_could_settle,
        closed_before_it_could_settle,
        too_late_to_settle,
        of_unknown_outcome,
        of_another_family,
        a_command_of_lifetime_zero,
    ],
)
def test_nothing_is_missed_that_is(happens: Callable[[History], None]) -> None:
    history = sound()
    history.reads.clear()
    happens(history)
    assert kinds(history) == set()


def test_what_a_fault_delayed_is_missed_only_if_it_lives_on_in_the_calm() -> None:
    history = sound()
    history.reads.clear()
    history.emitted(ea(3, lifetime_s=400.0), 5 * S, 6 * S, Outcome.OK)
    assert kinds(history, calm_us=500 * S) == set()
    assert kinds(history, calm_us=300 * S) == {"missed"}


def test_what_came_in_an_earlier_life_need_not_come_again_and_may() -> None:
    history = sound()
    history.watch_opened("w1", ef(100), 20 * S, 21 * S)
    assert kinds(history) == set()
    history.delivered("w1", ea(1).id, 22 * S)
    assert kinds(history) == set()


def test_a_repeat_within_one_life_is_found() -> None:
    history = sound()
    history.delivered("w2", ea(2).id, 9 * S)
    assert [(one.where, one.id) for one in verdict(history).repeated] == [("w2", ea(2).id)]


def test_a_repeat_within_one_read_is_found() -> None:
    history = sound()
    history.read_back(FAMILY, [ea(1).id, ea(2).id, ea(1).id], 900 * S)
    assert kinds(history) == {"repeated"}


def that_does_not_match(history: History) -> None:
    history.delivered("w2", ea(1).id, 9 * S)


def that_nobody_sent(history: History) -> None:
    history.delivered("w1", ea(77).id, 9 * S)


def that_was_refused(history: History) -> None:
    history.emitted(ea(3), 5 * S, 6 * S, Outcome.NOT)
    history.delivered("w1", ea(3).id, 9 * S)


def to_a_label_never_opened(history: History) -> None:
    history.delivered("w3", ea(1).id, 9 * S)


def that_had_expired_before_it_was_watched(history: History) -> None:
    history.reads.clear()
    history.emitted(ea(3, lifetime_s=2.0), 5 * S, 6 * S, Outcome.OK)
    history.watch_opened("late", ef(102), 50 * S, 51 * S)
    for number in (1, 2, 3):
        history.delivered("late", ea(number).id, 52 * S)


def read_though_it_was_refused(history: History) -> None:
    history.emitted(ea(3), 5 * S, 6 * S, Outcome.NOT)
    history.read_back(FAMILY, [ea(n).id for n in (1, 2, 3)], 900 * S)


def read_though_it_had_expired(history: History) -> None:
    history.emitted(ea(3, lifetime_s=2.0), 5 * S, 6 * S, Outcome.OK)
    history.read_back(FAMILY, [ea(n).id for n in (1, 2, 3)], 900 * S)


def kept_though_of_lifetime_zero(history: History) -> None:
    history.emitted(ea(3, lifetime_s=0.0), 5 * S, 6 * S, Outcome.OK)
    history.read_back(FAMILY, [ea(n).id for n in (1, 2, 3)], 900 * S)


@pytest.mark.parametrize(
    "happens",
    [
        that_does_not_match,
        that_nobody_sent,
        that_was_refused,
        to_a_label_never_opened,
        that_had_expired_before_it_was_watched,
        read_though_it_was_refused,
        read_though_it_had_expired,
        kept_though_of_lifetime_zero,
    ],
)
def test_a_phantom_is_one(happens: Callable[[History], None]) -> None:
    history = sound()
    happens(history)
    assert kinds(history) == {"phantom"}


def test_an_answered_event_that_a_read_does_not_find_is_lost() -> None:
    history = sound()
    history.read_back(FAMILY, [ea(1).id], 900 * S)
    assert [one.id for one in verdict(history).lost] == [ea(2).id]


def test_what_was_emitted_after_a_read_began_is_not_lost() -> None:
    history = sound()
    history.read_back(FAMILY, [], 2 * S)
    assert kinds(history) == set()


def test_a_read_that_could_not_be_complete_loses_nothing_but_shows_phantoms() -> None:
    history = sound()
    history.read_back(FAMILY, [], 900 * S, complete=False)
    assert kinds(history) == set()
    history.read_back(FAMILY, [ea(77).id], 900 * S, complete=False)
    assert kinds(history) == {"phantom"}


def line(start: int, end: int, epoch: int, *names: str) -> Line:
    return Line(Section(start, end), epoch, tuple(map(Member, names)))


def test_one_epoch_with_two_contents_is_found_also_where_lines_were_cut() -> None:
    history = sound()
    history.line_seen("a", line(0, 100, 2, "a"), 1)
    history.line_seen("b", line(0, 50, 2, "a"), 2)
    history.line_seen("b", line(100, 200, 2, "b"), 3)
    assert kinds(history) == set()
    history.line_seen("b", line(40, 60, 2, "a", "b"), 4)
    assert kinds(history) == {"split_epochs"}


def test_a_flag_makes_another_content() -> None:
    history = sound()
    history.line_seen("a", line(0, 100, 2, "a", "b"), 1)
    other = Line(Section(0, 100), 2, (Member("a"), Member("b", accumulatable=False)))
    history.line_seen("b", other, 2)
    assert kinds(history) == {"split_epochs"}


def test_an_epoch_that_goes_back_at_one_server_is_found() -> None:
    history = sound()
    history.line_seen("a", line(0, 100, 3, "a"), 1)
    history.line_seen("b", line(0, 100, 2, "a", "b"), 2)
    assert kinds(history) == set(), "b has not heard yet"
    history.line_seen("a", line(50, 100, 2, "a", "b"), 3)
    assert kinds(history) == {"epochs_back"}
