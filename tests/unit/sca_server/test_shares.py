"""Fair shares of an sCA server: who is over is told the limit's name and when to come again; others do not notice."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from sca_server.shares import ScaShareLimits, ScaShares
from utuple.errors import InvalidInput, Overloaded


def shares(kept: dict[str, int] | None = None, **limits: Any) -> ScaShares:
    known = kept or {}
    return ScaShares(ScaShareLimits(**limits), lambda who: known.get(who, 0))


def over(refused: pytest.ExceptionInfo[Overloaded], name: str) -> float:
    assert name in str(refused.value)
    assert "try again after" in str(refused.value)
    return refused.value.retry_after_s


def test_who_commands_too_much_a_second_is_told_when_to_come_again() -> None:
    own = shares(share_commands_per_s=10)
    with own.commands("a", 20, 0.0):
        pass
    with pytest.raises(Overloaded) as refused, own.commands("a", 5, 0.0):
        pass
    wait_s = over(refused, "share_commands_per_s")
    with own.commands("b", 20, 0.0), own.commands("a", 5, wait_s + 0.001):
        pass


def test_commands_that_wait_for_their_devices_are_counted_and_given_back() -> None:
    own = shares(share_unconfirmed=4)
    with own.commands("a", 3, 0.0), own.commands("b", 3, 0.0):
        with pytest.raises(Overloaded) as refused, own.commands("a", 2, 0.0):
            pass
        over(refused, "share_unconfirmed")
    with own.commands("a", 4, 0.0):
        pass


def test_what_is_refused_for_one_limit_is_not_counted_by_the_other() -> None:
    own = shares(share_commands_per_s=10, share_unconfirmed=20)
    with own.commands("a", 20, 0.0):
        with pytest.raises(Overloaded), own.commands("a", 20, 0.0):  # share_unconfirmed
            pass
    with own.commands("a", 20, 2.0):  # two seconds later the twenty that were taken are paid for
        pass
    with pytest.raises(Overloaded), own.commands("a", 20, 2.0):  # share_commands_per_s
        pass
    with own.commands("a", 20, 4.0):
        pass


def test_cfs_are_those_that_are_kept_and_those_that_come() -> None:
    kept = {"a": 9}
    own = shares(kept, share_cfs=10)
    own.register("a", 50, 1, 0.0)
    with pytest.raises(Overloaded) as refused:
        own.register("a", 50, 2, 0.0)
    over(refused, "share_cfs")
    own.register("b", 50, 2, 0.0)
    kept["a"] = 10
    own.register("a", 50, 0, 0.0)  # the same ones again


def test_registrations_a_second_count_also_if_they_are_known() -> None:
    own = shares(share_registrations_per_s=10)
    own.register("a", 20, 0, 0.0)
    with pytest.raises(Overloaded) as refused:
        own.register("a", 1, 0, 0.0)
    over(refused, "share_registrations_per_s")


def test_streams_count_while_they_are_open() -> None:
    own = shares(share_streams=1)
    with own.stream("a"), own.stream("b"):
        with pytest.raises(Overloaded) as refused, own.stream("a"):
            pass
        over(refused, "share_streams")
    with own.stream("a"):
        pass


@pytest.mark.parametrize("name", [field.name for field in fields(ScaShareLimits)])
def test_a_share_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        ScaShareLimits(**{name: 0})
