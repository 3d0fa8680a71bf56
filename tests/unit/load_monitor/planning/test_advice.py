"""What the operator is told, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from load_monitor.planning.advice import AddServers, Advice, AskLess, StartAgain
from load_monitor.planning.planner import plan
from load_monitor.planning.snapshot import ClusterSnapshot, Trend
from tests.unit.cluster.test_figures import BEFORE
from tests.unit.load_monitor.clusters import (
    NOW_S,
    POLICY,
    asked,
    busy,
    calm,
    cluster,
    full,
    silent,
)


def advice_for(snapshot: ClusterSnapshot) -> list[Advice]:
    return list(plan(snapshot, POLICY).advice)


def test_a_cluster_with_room_needs_no_advice() -> None:
    assert advice_for(cluster(BEFORE)) == []
    assert advice_for(cluster(BEFORE, busy("A"))) == []


def test_when_all_are_busy_servers_are_missing_now() -> None:
    """2.85 servers' work at 0.65 each is the work of five."""
    (advice,) = advice_for(cluster(BEFORE, *map(busy, "ABX")))
    assert isinstance(advice, AddServers)
    assert (advice.count, advice.by_s, advice.load) == (2, NOW_S, "processing")
    assert advice.sentence.startswith("Add 2 servers now: processing demand is 146%")


def test_a_server_that_is_asked_too_much_is_named_with_its_section() -> None:
    snapshot = cluster(BEFORE, asked("A", 0.9))
    (advice,) = advice_for(snapshot)
    assert isinstance(advice, AskLess)
    assert (advice.server, advice.section) == ("A", None)
    assert advice.sentence.startswith(
        "A is busy to 95%, and 90% of its time goes to EFs and searches. Helpers do not relieve it"
    )
    line = snapshot.lines[0]
    searched = replace(line, members=(replace(line.members[0], searches=0.8),))
    (advice,) = advice_for(replace(snapshot, lines=(searched, *snapshot.lines[1:])))
    assert isinstance(advice, AskLess) and advice.section == line.line.section
    assert f"most of them in section {line.line.section.start:016x}." in advice.sentence


def test_a_server_that_is_mostly_busy_with_eas_gets_help_and_no_advice() -> None:
    assert advice_for(cluster(BEFORE, asked("A", 0.3))) == []


def test_when_nobody_is_left_to_help_one_server_is_missing_now() -> None:
    snapshot = cluster(BEFORE, busy("A", 0.82), calm("B", 0.51), calm("X", 0.51))
    (advice,) = advice_for(snapshot)
    assert isinstance(advice, AddServers)
    assert (advice.count, advice.by_s) == (1, NOW_S)


def test_growing_demand_is_extrapolated_to_the_day_and_the_number() -> None:
    """0.9 of 1.95 bearable; 0.0001 a second more: used up after 10,500 s, 2.34 in four hours."""
    snapshot = replace(cluster(BEFORE), trend=Trend(processing_per_s=1e-4))
    (advice,) = advice_for(snapshot)
    assert isinstance(advice, AddServers)
    assert advice.count == 1
    assert advice.by_s == pytest.approx(NOW_S + 10_500)
    assert "Add 1 server within 3 h" in advice.sentence


def test_demand_is_extrapolated_no_further_than_it_was_looked_back() -> None:
    """Ten minutes of a morning's rise say nothing about the evening."""
    rise = Trend(processing_per_s=1e-3, span_s=600.0)
    assert advice_for(replace(cluster(BEFORE), trend=rise)) == []
    (advice,) = advice_for(replace(cluster(BEFORE), trend=replace(rise, span_s=3_600.0)))
    assert isinstance(advice, AddServers)
    assert advice.count == 4
    assert advice.by_s == pytest.approx(NOW_S + 1_050)


def test_memory_is_advised_by_bytes() -> None:
    snapshot = cluster(BEFORE, *map(full, "ABX"))
    (advice,) = advice_for(snapshot)
    assert isinstance(advice, AddServers)
    assert (advice.count, advice.load) == (1, "memory")
    growing = replace(cluster(BEFORE), trend=Trend(memory_bytes_per_s=0.2))
    (advice,) = advice_for(growing)
    assert isinstance(advice, AddServers)
    # 900 of 2,100 bytes; 2,880 more in four hours
    assert advice.count == 3
    assert advice.by_s == pytest.approx(NOW_S + 6_000)


def test_shrinking_demand_needs_no_advice() -> None:
    assert advice_for(replace(cluster(BEFORE), trend=Trend(-1.0, -1e6))) == []


def test_a_draining_server_takes_its_capacity_along_but_not_its_load() -> None:
    leaving = calm("X", 0.7, draining=True)
    (advice,) = advice_for(cluster(BEFORE, calm("A", 0.5), calm("B", 0.5), leaving))
    assert isinstance(advice, AddServers)
    assert advice.count == 1


def test_a_silent_home_is_to_be_started_again() -> None:
    figure = "0000 – 3000  A1, B1\n3001 – 6500  B0, A1\n6501 – 9999  X1"
    (advice,) = advice_for(cluster(figure, silent("A")))
    assert isinstance(advice, StartAgain)
    assert (advice.server, advice.lines) == ("A", 2), "home of one, the only one on in the other"
    assert "Start A again" in advice.sentence


def test_a_silent_member_that_others_stand_in_for_needs_no_advice() -> None:
    assert advice_for(cluster("0000 – 3000  A1, B1\n3001 – 9999  X1", silent("B"))) == []
