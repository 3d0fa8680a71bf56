"""How many servers are required: formula 1 of paper 003, bounds and the dead band."""

from __future__ import annotations

import pytest

from load_monitor.elastic.inner import required, wanted
from load_monitor.elastic.policy import ServerRules
from load_monitor.elastic.seen import Seen, SeenServer

RULES = ServerRules(min=1, max=20, target=0.6, upper=0.8, lower=0.3)


def of(*loads: float, memory: float = 0.0, growth_per_s: float = 0.0, floor: int = 0) -> Seen:
    servers = tuple(
        SeenServer(f"server-{at + 1}", processing=load, processing_lately=load, memory=memory)
        for at, load in enumerate(loads)
    )
    return Seen(0.0, servers, growth_per_s=growth_per_s, floor=floor)


def test_two_servers_at_80_percent_are_three_at_60_as_in_section_4_4() -> None:
    assert required(2, 0.80, 0.60) == 3


@pytest.mark.parametrize(
    ("current", "present", "target", "count"),
    [
        (3, 0.2, 0.6, 1),
        (2, 0.9, 0.6, 3),
        (5, 0.91, 0.65, 7),
        (7, 0.64, 0.9, 5),
        (3, 0.0, 0.6, 0),
        (1, 4.0, 0.5, 8),
    ],
)
def test_a_quotient_that_is_whole_is_not_rounded_up(
    current: int, present: float, target: float, count: int
) -> None:
    assert required(current, present, target) == count


def test_between_the_thresholds_nothing_changes_though_the_formula_would() -> None:
    """Section 6.2.2: 7 servers at 64 % stay, though ceil(7 x 64 / 90) is 5."""
    rules = ServerRules(target=0.9, upper=0.9, lower=0.1)
    assert required(7, 0.64, rules.target) == 5
    assert wanted(of(*[0.64] * 7), rules, is_calm=True).count == 7


def test_servers_come_above_the_upper_threshold_and_not_at_it() -> None:
    assert wanted(of(0.8, 0.8), RULES, is_calm=True).count == 2
    assert wanted(of(0.81, 0.81), RULES, is_calm=True).count == 3


def test_a_server_leaves_below_the_lower_threshold_once_it_is_calm() -> None:
    assert wanted(of(0.2, 0.2, 0.2), RULES, is_calm=False).count == 3
    assert wanted(of(0.2, 0.2, 0.2), RULES, is_calm=True).count == 2
    assert wanted(of(0.3, 0.3, 0.3), RULES, is_calm=True).count == 3


def test_no_server_leaves_while_what_it_holds_would_not_fit_elsewhere() -> None:
    said = wanted(of(0.1, 0.1, memory=0.5), RULES, is_calm=True)
    assert (said.count, "50% full" in said.why) == (2, True)


def test_full_stores_bring_servers_though_nobody_is_busy() -> None:
    assert wanted(of(0.1, 0.1, memory=0.9), RULES, is_calm=True).count == 3


@pytest.mark.parametrize(("floor", "count"), [(0, 2), (3, 3), (99, 5)])
def test_bounds_come_before_load_and_a_forecast_lifts_the_lower_one(floor: int, count: int) -> None:
    rules = ServerRules(min=2, max=5)
    assert wanted(of(0.0, floor=floor), rules, is_calm=True).count == count
    assert wanted(of(*[4.0] * 5), rules, is_calm=True).count == 5
    assert wanted(of(*[0.5] * 7), rules, is_calm=True).count == 5


def test_growth_is_limited_to_twice_as_many_or_four() -> None:
    assert wanted(of(4.0), RULES, is_calm=False).count == 4
    assert wanted(of(*[4.0] * 3), RULES, is_calm=False).count == 6


def test_load_that_grows_is_met_ahead_of_its_time() -> None:
    growing = of(0.7, 0.7, growth_per_s=0.01)
    assert wanted(growing, RULES, is_calm=False).count == 2
    ahead = wanted(growing, ServerRules(ahead_s=60.0), is_calm=False)
    assert (ahead.count, "growing" in ahead.why) == (4, True)


def test_no_server_leaves_when_load_is_about_to_come() -> None:
    seen = of(0.2, 0.2, growth_per_s=0.01)
    assert wanted(seen, ServerRules(ahead_s=60.0), is_calm=True).count == 2


def test_a_load_that_fell_a_moment_ago_still_counts_against_leaving() -> None:
    servers = tuple(
        SeenServer(f"server-{n}", processing=0.1, processing_lately=0.5) for n in (1, 2)
    )
    assert wanted(Seen(0.0, servers), RULES, is_calm=True).count == 2
