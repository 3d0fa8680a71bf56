"""Medians, spread and targets of several runs."""

from __future__ import annotations

import pytest

from benchmarks.figures import Figures, Summary, Target
from utuple.errors import InvalidInput

SPEED = Target("help_s", at_most=2.0)
LAW = Target("missed", at_most=0, always=True)


def summary(*runs: Figures) -> Summary:
    return Summary("help", runs, (SPEED, LAW), {"cores": 2})


def test_a_speed_is_judged_by_its_median_and_shown_with_its_spread() -> None:
    found = summary(
        {"help_s": 1.0, "missed": 0}, {"help_s": 9.0, "missed": 0}, {"help_s": 1.5, "missed": 0}
    )
    assert found.figures == {"help_s": 1.5, "missed": 0}
    assert found.spread == {"help_s": [1.0, 9.0], "missed": [0, 0]}
    assert found.is_met and not found.breaks_a_law


def test_a_law_is_judged_by_its_worst_run() -> None:
    found = summary(
        {"help_s": 1.0, "missed": 0}, {"help_s": 1.0, "missed": 0}, {"help_s": 1.0, "missed": 3}
    )
    assert found.figures["missed"] == 3
    assert not found.is_met and found.breaks_a_law


def test_a_speed_that_is_missed_breaks_no_law() -> None:
    found = summary({"help_s": 2.1, "missed": 0})
    assert found.missed_targets == [SPEED]
    assert not found.breaks_a_law


def test_the_json_says_figures_target_met_runs_and_spread() -> None:
    said = summary({"help_s": 2.12345, "missed": 0}).to_json()
    assert said["help_s"] == 2.123
    assert said["target"] == {"help_s": "<= 2", "missed": "<= 0"}
    assert said["met"] is False
    assert said["met_by"] == {"help_s": False, "missed": True}
    assert (said["runs"], said["spread"]["help_s"]) == (1, [2.123, 2.123])


def test_at_least_is_met_from_its_bound_on() -> None:
    target = Target("scaling_8", at_least=7.2)
    assert target.is_met_by(7.2) and not target.is_met_by(7.19)
    assert str(target) == ">= 7.2"


def test_a_target_of_no_figure_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no figure"):
        Summary("help", [{"help_s": 1.0}], (SPEED, LAW), {})
    with pytest.raises(InvalidInput, match="at_most or at_least"):
        Target("help_s")
    with pytest.raises(InvalidInput, match="nothing to sum up"):
        summary()


def test_a_target_of_a_rival_that_is_not_here_is_skipped_and_not_missed() -> None:
    rival = Target("ratio_nats", at_least=5, rival="nats")
    found = Summary("ingest", [{"help_s": 1.0}], (SPEED, rival), {})
    assert found.is_met and found.missed_targets == []
    assert found.skipped == {"ratio_nats": "nats is not installed"}
    said = found.to_json()
    assert said["met"] is True and "ratio_nats" not in said
    assert said["met_by"] == {"help_s": True}
    assert said["skipped"] == {"ratio_nats": "nats is not installed"}


def test_a_target_of_a_rival_that_is_here_is_judged() -> None:
    rival = Target("ratio_nats", at_least=5, rival="nats")
    found = Summary("ingest", [{"ratio_nats": 4.9}], (rival,), {})
    assert found.missed_targets == [rival] and found.skipped == {}


def test_the_json_says_what_was_durable() -> None:
    found = Summary("ingest", [{"help_s": 1.0}], (SPEED,), {}, {"mosquitto": "not durable"})
    assert found.to_json()["notes"] == {"mosquitto": "not durable"}


def test_a_figure_that_only_some_runs_found_is_refused() -> None:
    with pytest.raises(InvalidInput, match="every run"):
        summary({"help_s": 1.0, "missed": 0}, {"help_s": 1.0, "missed": 0, "ratio_nats": 3.0})
