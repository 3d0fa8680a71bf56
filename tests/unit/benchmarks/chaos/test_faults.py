"""How long a recovery took, and what is counted."""

from __future__ import annotations

from benchmarks.chaos.faults import Healed, Toll, recovery_s
from benchmarks.chaos.schedule import Act, Fault


def healed(target: str, healed_s: float, well_s: float | None) -> Healed:
    return Healed(Fault(Act.KILL, target, 0.0, 1.0), healed_s, well_s)


def test_a_recovery_lasts_from_healing_to_being_well() -> None:
    one = healed("server-1", 10.0, 13.0)
    assert recovery_s(one, [one]) == 3.0


def test_a_fault_that_was_healed_later_starts_the_clock_anew() -> None:
    one, other = healed("server-1", 10.0, 15.0), healed("server-2", 14.0, 16.0)
    assert recovery_s(one, [one, other]) == 1.0
    assert recovery_s(other, [one, other]) == 2.0


def test_a_fault_that_was_healed_after_one_was_well_does_not_count_for_it() -> None:
    one, other = healed("server-1", 10.0, 12.0), healed("server-2", 14.0, 16.0)
    assert recovery_s(one, [one, other]) == 2.0


def test_the_longest_recovery_is_told_and_what_nobody_can_tell_is_left_out() -> None:
    toll = Toll()
    toll.note([healed("server-1", 10.0, 12.0), healed("reader-1", 10.0, None)])
    toll.note([healed("server-2", 20.0, 25.0)])
    assert [took_s for took_s, _ in toll.recoveries_s] == [2.0, 5.0]
    assert toll.recovery_s_max == 5.0
