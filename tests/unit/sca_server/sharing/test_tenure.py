"""Section 3.2 of the paper: what an sCA server may say of a device while others join, leave and crash."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sca_server.sharing.tenure import Tenure, TenureLimits
from utuple.cluster.shares import Shares
from utuple.model.utuple import Family

POWER = Family("aircon", "power")
LIMITS = TenureLimits(settle_s=2.0, agree_s=1.0, pause_s=0.5, most_s=10.0)
ONE, BOTH = Shares(["sca-1"]), Shares(["sca-1", "sca-2"])
ADDRESSES = [f"room-{number}" for number in range(50)]
OURS = next(address for address in ADDRESSES if BOTH.owner(POWER, address) == "sca-1")
THEIRS = next(address for address in ADDRESSES if BOTH.owner(POWER, address) == "sca-2")


def settled(shares: Shares = ONE) -> Tenure:
    tenure = Tenure("sca-1", LIMITS, 0.0)
    tenure.change(shares, 0.0)
    assert tenure.agree(by_all=True, now_s=0.0)
    assert tenure.settle(filled=True, now_s=LIMITS.settle_s)
    return tenure


def test_a_server_that_has_just_started_speaks_for_nobody() -> None:
    tenure = Tenure("sca-1", LIMITS, 0.0)
    assert tenure.owns(POWER, OURS)
    assert not tenure.is_steady(POWER, OURS)
    assert not tenure.is_settled and not tenure.has_agreed


def test_one_that_joins_takes_its_share_at_once_and_the_rest_stays_steady() -> None:
    tenure = settled()
    assert not tenure.change(BOTH, 5.0)
    assert not tenure.owns(POWER, THEIRS)
    assert tenure.owns(POWER, OURS) and tenure.is_steady(POWER, OURS)
    assert tenure.is_settled


def test_what_another_leaves_behind_is_new_until_it_settles() -> None:
    tenure = settled(BOTH)
    assert tenure.change(ONE, 5.0)
    assert tenure.is_steady(POWER, OURS)
    assert tenure.owns(POWER, THEIRS) and not tenure.is_steady(POWER, THEIRS)
    assert tenure.agree(by_all=True, now_s=5.0)
    assert not tenure.settle(filled=True, now_s=5.0 + LIMITS.settle_s - 0.1)
    assert not tenure.settle(filled=False, now_s=5.0 + LIMITS.settle_s)
    assert tenure.settle(filled=True, now_s=5.0 + LIMITS.settle_s)
    assert tenure.is_steady(POWER, THEIRS)


def test_what_went_to_another_and_came_back_is_new() -> None:
    """It was attached elsewhere in between."""
    tenure = settled()
    tenure.change(BOTH, 5.0)
    assert tenure.change(ONE, 6.0)
    assert not tenure.is_steady(POWER, THEIRS)


def test_one_that_was_only_away_for_a_moment_leaves_everything_steady() -> None:
    tenure = settled(BOTH)
    tenure.change(ONE, 5.0)
    assert not tenure.change(BOTH, 6.0)
    assert tenure.is_settled
    assert tenure.is_steady(POWER, OURS) and not tenure.owns(POWER, THEIRS)


def test_after_a_doubt_nothing_is_steady_until_all_agree_anew_and_devices_had_time() -> None:
    tenure = settled(BOTH)
    tenure.doubt(5.0)
    assert not tenure.is_steady(POWER, OURS) and not tenure.has_agreed
    assert tenure.agree(by_all=True, now_s=5.1)
    assert not tenure.had_time(5.1 + LIMITS.settle_s - 0.1)
    assert tenure.settle(filled=True, now_s=5.1 + LIMITS.settle_s)
    assert tenure.is_steady(POWER, OURS)


def test_others_are_waited_for_until_they_agree_but_not_for_ever() -> None:
    tenure = settled(BOTH)
    tenure.change(ONE, 5.0)
    assert not tenure.agree(by_all=False, now_s=5.0 + LIMITS.agree_s - 0.1)
    assert not tenure.settle(filled=True, now_s=9.0)
    assert tenure.agree(by_all=False, now_s=9.0)
    assert not tenure.agree(by_all=True, now_s=9.1), "said once"


def test_while_devices_keep_coming_more_are_waited_for_up_to_a_limit() -> None:
    tenure = settled(BOTH)
    tenure.change(ONE, 5.0)
    tenure.agree(by_all=True, now_s=5.0)
    tenure.came(6.9)
    assert not tenure.settle(filled=True, now_s=7.1)
    assert tenure.settle(filled=True, now_s=7.4)
    tenure = settled(BOTH)
    tenure.change(ONE, 5.0)
    tenure.agree(by_all=True, now_s=5.0)
    tenure.came(14.9)
    assert tenure.settle(filled=True, now_s=5.0 + LIMITS.most_s)


def test_a_program_that_brings_more_is_waited_for_until_it_has_or_is_gone_or_takes_too_long() -> (
    None
):
    tenure = settled(BOTH)
    tenure.change(ONE, 5.0)
    tenure.agree(by_all=True, now_s=5.0)
    tenure.bring("a gateway", more=True)
    tenure.bring("another", more=True)
    tenure.bring("another", more=False)
    assert not tenure.had_time(5.0 + LIMITS.settle_s)
    assert not tenure.settle(filled=True, now_s=5.0 + LIMITS.most_s - 0.1)
    assert tenure.had_time(5.0 + LIMITS.most_s), "it may have been forgotten"
    tenure.bring("a gateway", more=False)
    assert tenure.settle(filled=True, now_s=5.0 + LIMITS.settle_s)


names = st.lists(st.sampled_from(["sca-1", "sca-2", "sca-3"]), min_size=1, unique=True)


@given(st.lists(names, max_size=8), st.sampled_from(ADDRESSES))
def test_steady_is_what_was_ours_by_every_list_since_the_settled_one(
    lists: list[list[str]], address: str
) -> None:
    """The short lists it keeps say the same as all of them would."""
    tenure = settled(BOTH)
    for at, some in enumerate(lists):
        tenure.change(Shares(some), float(at))
    ours = [Shares(some).owner(POWER, address) == "sca-1" for some in lists]
    if not lists or ours[-1]:
        was_ours = all([BOTH.owner(POWER, address) == "sca-1", *ours])
        is_ours = tenure.owns(POWER, address)
        assert is_ours == (ours[-1] if ours else BOTH.owner(POWER, address) == "sca-1")
        if is_ours:
            assert tenure.is_steady(POWER, address) == was_ours
