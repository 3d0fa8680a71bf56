"""The time an sCA server has lived through."""

from __future__ import annotations

from sca_server.sharing.awake import Awake
from sca_server.sharing.membership import Membership
from sca_server.sharing.tenure import Tenure, TenureLimits
from utuple.cluster.line import ServerInfo
from utuple.cluster.shares import Shares


def test_while_the_loop_goes_round_it_is_the_time_of_the_clock() -> None:
    awake = Awake(1.0, 100.0)
    for at_s in (100.0, 100.5, 101.0, 101.75):
        awake.beat(at_s)
        assert awake.at(at_s) == at_s
    assert awake.at(102.5) == 102.5


def test_of_a_pause_no_more_than_the_most_counts_before_and_after_the_next_beat() -> None:
    awake = Awake(1.0, 100.0)
    assert awake.at(116.0) == 101.0
    awake.beat(116.0)
    assert awake.at(116.5) == 101.5


def test_one_that_stood_still_for_too_long_is_late_until_its_next_beat() -> None:
    awake = Awake(1.0, 100.0, late_s=1.5)
    assert [awake.is_late(at_s) for at_s in (101.4, 101.5)] == [False, True]
    awake.beat(101.5)
    assert not awake.is_late(102.9)


def test_who_stood_still_itself_calls_nobody_silent_and_denies_nobody() -> None:
    """Answers, and devices that came meanwhile, are there and wait to be read. An sCA server of a busy machine denied 1,410
    commands to devices whose attachment lay in its sockets."""
    awake = Awake(1.0, 0.0)
    membership = Membership(ServerInfo("sca-1", "host:1", "sca", 1), silent_s=1.5)
    membership.hear([ServerInfo("sca-2", "host:2", "sca", 1)], awake.at(0.0))
    tenure = Tenure("sca-1", TenureLimits(2.5, 5.0, 0.5, 20.0), awake.at(0.0))
    tenure.change(Shares(["sca-1", "sca-2"]), awake.at(0.0))
    tenure.agree(by_all=True, now_s=awake.at(0.0))
    assert not membership.look(awake.at(16.0))
    assert not tenure.had_time(awake.at(16.0))
    awake.beat(16.0)
    assert membership.look(awake.at(16.5))
    assert not tenure.had_time(awake.at(17.0))
    awake.beat(17.0)
    assert tenure.had_time(awake.at(17.6))
