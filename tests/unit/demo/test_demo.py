"""The demo's plan and its accounts: what must come is known before anything is sent."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.unit.model.naive import naive_matches
from utuple.demo import scenario
from utuple.demo.tally import Account, HotKey, Outcome


def test_what_the_applications_expect_is_what_the_naive_version_says() -> None:
    events = scenario.actuals(scenario.truck_events(Random(1))[:500])
    for asked in scenario.WATCHES:
        naive = {e.data["n"] for e in events if e.data and naive_matches(e, asked.formal)}
        assert asked.expects(events) == naive, asked.reader


def test_every_application_of_the_demo_has_something_to_wait_for_and_something_to_ignore() -> None:
    dice = Random(1)
    trucks = scenario.truck_events(dice)
    events = scenario.actuals([*trucks, *scenario.climate_events(dice, scenario.rooms(dice))])
    for asked in scenario.WATCHES:
        assert 0 < len(asked.expects(events)) < len(events), asked.reader


def test_the_circle_has_rooms_inside_and_outside() -> None:
    rooms = scenario.rooms(Random(1))
    assert 0 < len(scenario.inside(rooms, scenario.TOKYO)) < len(rooms)


def test_numbers_are_unique_within_a_family() -> None:
    numbers = [event["data"]["n"] for event in scenario.truck_events(Random(1))]
    assert len(set(numbers)) == len(numbers) == scenario.TRUCKS * scenario.ROUNDS


def test_an_account_tells_missed_repeated_and_unexpected_apart() -> None:
    account = Account({1, 2, 3}, Counter([1, 1, 2, 9]))
    assert (account.missed, account.repeated, account.unexpected) == (1, 1, 1)
    assert account.delivered == 4 and not account.is_complete


HELPED = HotKey(helped_s=6.0, released_s=25.0, spread_per_s={"server-1": 80.0, "server-2": 70.0})


def outcome(account: Account, recovered: bool = True, hot_key: HotKey = HELPED) -> Outcome:
    accounts = {"dispatch": account}
    return Outcome(emitted=3, recovered=recovered, accounts=accounts, hot_key=hot_key)


def test_the_demo_is_good_only_if_nothing_is_wrong() -> None:
    assert outcome(Account({1, 2}, Counter([1, 2]))).is_good
    assert not outcome(Account({1, 2}, Counter([1, 2])), recovered=False).is_good
    assert not outcome(Account({1, 2}, Counter([1, 2])), hot_key=HotKey()).is_good
    for wrong in ([1], [1, 2, 2], [1, 2, 3]):
        assert not outcome(Account({1, 2}, Counter(wrong))).is_good, wrong


def test_the_summary_has_the_fields_programs_read() -> None:
    summary = outcome(Account({1, 2}, Counter([1, 1]))).summary()
    wanted = "emitted expected delivered missed repeated commands recovered seconds hot_key".split()
    assert set(wanted) <= set(summary)
    assert (summary["expected"], summary["delivered"]) == (2, 2)
    assert (summary["missed"], summary["repeated"]) == (1, 1)
