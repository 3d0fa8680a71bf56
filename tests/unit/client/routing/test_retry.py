"""What follows a failed attempt."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.client.routing.retry import Again, Fate, GiveUp, Policy, Tries, after, backoff_s

POLICY = Policy(first_wait_s=0.1, most_wait_s=1.0, same_member_s=5.0)
FRESH = Tries(deadline_s=100.0)


def step(tries: Tries, fate: Fate, member: str = "a", now_s: float = 0.0, **more: Any) -> Again:
    found = after(tries, fate, member, now_s=now_s, dice=0.0, policy=POLICY, **more)
    assert isinstance(found, Again)
    return found


@pytest.mark.parametrize(
    ("fate", "more", "wait_s", "refresh", "retry", "member", "avoid"),
    [
        (Fate.BEHIND, {"newer_line": True}, 0.0, False, False, None, set()),
        (Fate.BEHIND, {}, 0.05, True, False, None, {"a"}),
        (Fate.BEHIND, {"others": True}, 0.0, True, False, None, {"a"}),
        (Fate.FULL, {"retry_after_s": 3.0}, 3.0, False, False, None, {"a"}),
        (Fate.FULL, {"retry_after_s": 3.0, "others": True}, 0.0, False, False, None, {"a"}),
        (Fate.UNREACHABLE, {"others": True}, 0.0, True, False, None, {"a"}),
        (Fate.UNREACHABLE, {}, 0.05, True, False, None, {"a"}),
        (Fate.LOST, {}, 0.05, True, True, "a", set()),
        (Fate.LOST, {"others": True}, 0.05, True, True, "a", set()),
    ],
)
def test_the_first_failure(
    fate: Fate,
    more: dict[str, Any],
    wait_s: float,
    refresh: bool,
    retry: bool,
    member: str | None,
    avoid: set[str],
) -> None:
    again = step(FRESH, fate, **more)
    assert (again.wait_s, again.refresh) == (wait_s, refresh)
    assert (again.tries.retry, again.tries.member) == (retry, member)
    assert set(again.tries.avoid) == avoid


def test_a_lost_answer_is_asked_for_at_the_same_member_until_it_was_silent_too_long() -> None:
    tries = step(FRESH, Fate.LOST, now_s=10.0).tries
    tries = step(tries, Fate.UNREACHABLE, now_s=14.9, others=True).tries
    assert (tries.member, tries.retry) == ("a", True)
    tries = step(tries, Fate.UNREACHABLE, now_s=15.0, others=True).tries
    assert (tries.member, tries.retry, set(tries.avoid)) == (None, True, {"a"})


def test_after_a_lost_answer_every_attempt_is_a_retry_even_by_a_newer_line() -> None:
    tries = step(FRESH, Fate.LOST).tries
    tries = step(tries, Fate.BEHIND, newer_line=True).tries
    assert tries.retry and tries.member == "a"


def test_newer_lines_are_followed_at_once_but_not_for_ever() -> None:
    tries, waits = FRESH, []
    for _ in range(5):
        again = step(tries, Fate.BEHIND, newer_line=True)
        tries = again.tries
        waits.append(again.wait_s)
    assert waits[:3] == [0.0, 0.0, 0.0]
    assert all(wait > 0 for wait in waits[3:])


def test_every_other_member_is_tried_before_the_next_wait() -> None:
    tries, tried = FRESH, ""
    for _ in range(7):
        member = next(name for name in "abc" if name not in tries.avoid)
        others = bool(set("abc") - tries.avoid - {member})
        again = step(tries, Fate.BEHIND, member, others=others)
        tries = again.tries
        tried += member + (" " if again.wait_s else "")
    assert tried == "abc ab ac "


def test_who_has_not_heard_of_an_epoch_is_asked_again_soon_for_a_while() -> None:
    tries, waits = FRESH, []
    for _ in range(26):
        again = step(tries, Fate.BEHIND)
        tries = again.tries
        waits.append(again.wait_s)
    assert waits[:21] == [0.05] * 21
    assert waits[-1] == 0.5


def test_the_waits_double_whoever_is_tried() -> None:
    tries, waits = FRESH, []
    for member in "abcabc":
        again = step(tries, Fate.UNREACHABLE, member)
        tries = again.tries
        waits.append(again.wait_s)
    assert waits == [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]


@pytest.mark.parametrize("fate", [Fate.BEHIND, Fate.UNREACHABLE])
def test_hops_to_other_members_do_not_make_the_next_wait_longer(fate: Fate) -> None:
    tries = FRESH
    for member in range(40):
        tries = step(tries, Fate.BEHIND, f"s{member}", others=True).tries
    assert step(tries, fate, "last").wait_s == 0.05


def test_a_member_that_may_have_it_and_is_behind_is_not_asked_in_a_loop() -> None:
    tries = step(FRESH, Fate.LOST, now_s=10.0).tries
    again = step(tries, Fate.BEHIND, now_s=11.0, others=True)
    assert (again.tries.member, again.wait_s > 0) == ("a", True)
    again = step(again.tries, Fate.BEHIND, now_s=15.0, others=True)
    assert (again.tries.member, set(again.tries.avoid)) == (None, {"a"})


fates = st.lists(st.sampled_from(list(Fate)), min_size=1, max_size=40)


@given(fates, st.floats(0, 1, exclude_max=True))
def test_it_ends_by_the_deadline_and_says_unknown_exactly_if_an_answer_was_lost(
    course: list[Fate], dice: float
) -> None:
    tries, now_s, lost = Tries(deadline_s=3.0), 0.0, False
    for fate in [*course, *[Fate.FULL] * 1000]:
        lost = lost or fate is Fate.LOST
        found = after(tries, fate, "a", now_s=now_s, dice=dice, policy=POLICY, others=False)
        if isinstance(found, GiveUp):
            assert found.unknown is lost
            return
        assert now_s + found.wait_s < 3.0
        now_s += found.wait_s
        tries = found.tries
    raise AssertionError("it went on after the deadline")


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_waits_stay_between_half_the_first_and_the_most(failed: int, dice: float) -> None:
    assert 0.05 <= backoff_s(failed, dice, POLICY) <= 1.0


def test_a_full_server_is_not_tried_again_when_its_answer_would_come_too_late() -> None:
    """Better "not registered" than an unknown outcome."""

    def full(deadline_s: float) -> Again | GiveUp:
        return after(
            Tries(deadline_s),
            Fate.FULL,
            "a",
            now_s=0.0,
            dice=0.0,
            policy=POLICY,
            retry_after_s=2.0,
        )

    assert full(5.9) == GiveUp(unknown=False)
    found = full(6.1)
    assert isinstance(found, Again) and found.wait_s == 2.0
