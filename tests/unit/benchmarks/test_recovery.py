"""When answers were back to normal."""

from __future__ import annotations

from benchmarks.overload.recovery import normal_s, recovery_s

OK, NO = "ok", "refused"


def test_normal_is_three_times_the_usual_or_a_little_above_it() -> None:
    probes = [(0.0, 0.1, OK), (1.0, 1.2, OK), (2.0, 2.1, OK), (9.0, 19.0, OK)]
    assert abs(normal_s(probes, 5.0) - 0.3) < 1e-9
    assert abs(normal_s([(0.0, 0.01, OK)], 5.0) - 0.06) < 1e-9


def test_recovery_is_when_probes_begin_to_be_as_usual_and_stay_so() -> None:
    slow, refused = (10.5, 12.0, OK), (12.0, 12.1, NO)
    calm = [(13.0 + n / 10, 13.05 + n / 10, OK) for n in range(20)]
    found = recovery_s([slow, refused, *calm], 10.0, 0.1, OK, calm_s=1.0)
    assert found is not None and abs(found - 3.0) < 1e-9
    again = [*calm[:5], (13.5, 15.0, OK), *((s + 3, e + 3, o) for s, e, o in calm)]
    found = recovery_s(again, 10.0, 0.1, OK, calm_s=1.0)
    assert found is not None and abs(found - 6.0) < 1e-9, "a slow one in between begins it anew"


def test_what_does_not_recover_is_not_said_to() -> None:
    assert recovery_s([(11.0, 11.01, OK)], 10.0, 0.1, OK, calm_s=1.0) is None
    assert recovery_s([(11.0, 15.0, OK)], 10.0, 0.1, OK, calm_s=1.0) is None
