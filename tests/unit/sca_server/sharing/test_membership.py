"""Section 3.2 of the paper: who the sCA servers are, as one of them knows them."""

from __future__ import annotations

from dataclasses import replace

from sca_server.sharing.membership import Membership
from utuple.cluster.line import ServerInfo
from utuple.cluster.shares import AWAY, LEFT, SCA

SILENT_S = 2.0
LOOK_S = 0.5


def info(number: int, role: str = SCA, since_us: int = 100) -> ServerInfo:
    return ServerInfo(f"sca-{number}", f"host:{number}", role, since_us)


def membership(number: int = 1) -> Membership:
    return Membership(info(number), silent_s=SILENT_S)


def looked(own: Membership, from_s: float, until_s: float) -> bool:
    """Every LOOK_S, as its program does. True: somebody was said to be away, at the last look."""
    at_s = from_s
    while at_s < until_s:
        assert not own.look(at_s), f"said to be away at {at_s:g} s"
        at_s += LOOK_S
    return own.look(until_s)


def test_one_that_is_heard_of_has_a_share() -> None:
    own = membership()
    assert list(own.shares.names) == ["sca-1"]
    assert own.hear([info(2), ServerInfo("server-1", "host:9")], 0.0)
    assert list(own.shares.names) == ["sca-1", "sca-2"]
    assert not own.hear([info(2)], 1.0)


def test_one_that_is_silent_for_too_long_is_away_and_that_is_told_on() -> None:
    own = membership()
    own.hear([info(2)], 0.0)
    assert not looked(own, 0.0, SILENT_S - 0.1)
    own.answered("sca-2", [info(1), info(2)], 1.0)
    assert not own.look(1.0 + SILENT_S - 0.1)
    assert own.look(1.0 + SILENT_S)
    assert own.shares.names == ("sca-1",)
    assert own.gone == [info(2, AWAY, 101)]


def test_one_that_hears_it_is_away_says_the_contrary_with_a_newer_word() -> None:
    own = membership()
    assert own.hear([info(1, AWAY, 101)], 0.0)
    assert own.own == info(1, SCA, 102)
    assert own.shares.names == ("sca-1",)


def test_a_life_before_this_one_under_a_later_clock_does_not_count() -> None:
    own = membership()
    own.hear([info(1, SCA, 5_000)], 0.0)
    assert own.own == info(1, SCA, 5_001)


def test_another_program_of_its_name_is_not_fought_with() -> None:
    own = membership()
    other = replace(info(1, SCA, 500), address="elsewhere:1")
    own.hear([other], 0.0)
    assert own.own == info(1)


def test_one_that_is_alive_and_cannot_be_reached_is_believed_longer_each_time() -> None:
    """Else two that are cut off from each other would share the devices out anew for ever."""
    own = membership()
    own.hear([info(2)], 0.0)
    assert looked(own, 0.0, SILENT_S)
    own.hear([info(2, SCA, 102)], SILENT_S)
    assert looked(own, SILENT_S, 3 * SILENT_S)
    own.hear([info(2, SCA, 104)], 3 * SILENT_S)
    assert looked(own, 3 * SILENT_S, 7 * SILENT_S)


def test_one_that_is_slow_is_believed_longer_though_it_answers_until_it_was_fast_for_a_while() -> (
    None
):
    """Devices that move from one sCA server to the other and back are the last thing a busy machine needs."""
    own = membership()
    own.hear([info(2)], 0.0)
    assert looked(own, 0.0, SILENT_S)
    own.hear([info(2, SCA, 102)], SILENT_S)
    own.answered("sca-2", [info(1), info(2, SCA, 102)], SILENT_S)
    assert looked(own, SILENT_S, 3 * SILENT_S)
    own.hear([info(2, SCA, 104)], 3 * SILENT_S)
    calm_s = 3 * SILENT_S + 60.0
    own.answered("sca-2", [info(1), info(2, SCA, 104)], calm_s)
    assert looked(own, calm_s, calm_s + SILENT_S)


def test_one_that_was_away_and_has_begun_a_new_life_is_not_believed_longer() -> None:
    own = membership()
    own.hear([info(2)], 0.0)
    assert looked(own, 0.0, SILENT_S)
    own.hear([info(2, SCA, 5_000_000)], SILENT_S)
    assert looked(own, SILENT_S, 2 * SILENT_S)


def test_one_that_leaves_says_so_and_is_not_taken_for_silent() -> None:
    own, other = membership(1), membership(2)
    own.hear([info(2)], 0.0)
    other.hear([info(1)], 0.0)
    own.leave(now_us=50)
    assert own.own == info(1, LEFT, 101)
    assert own.shares.names == ("sca-2",)
    assert other.answered("sca-1", own.infos, 1.0)
    assert other.shares.names == ("sca-2",)
    assert not looked(other, 1.0, 20.0)


def test_all_agree_when_every_other_shares_out_among_the_same() -> None:
    own = membership()
    assert own.all_agree()
    own.hear([info(2), info(3)], 0.0)
    assert not own.all_agree()
    own.answered("sca-2", [info(1), info(2), info(3)], 0.1)
    own.answered("sca-3", [info(1), info(3)], 0.1)
    assert not own.all_agree()
    own.answered("sca-3", [info(1), info(2), info(3)], 0.2)
    assert own.all_agree()
    own.hear([info(4)], 0.3)
    assert not own.all_agree()


def test_after_a_doubt_the_others_are_asked_again_before_all_agree() -> None:
    own = membership()
    own.hear([info(2)], 0.0)
    own.answered("sca-2", [info(1), info(2)], 0.1)
    own.doubt()
    assert not own.all_agree()
    own.answered("sca-2", [info(1), info(2)], 0.2)
    assert own.all_agree()
