"""What a chaos run came to, and when it is good."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.chaos.checker import Finding, Verdict
from benchmarks.chaos.faults import Toll
from benchmarks.chaos.moves import Moves
from benchmarks.chaos.ordering import Given
from benchmarks.chaos.report import Report

GOOD = Report(Verdict(registered=7), Toll(), Moves(), Given(), 1, [], {}, seed=3, minutes=0.5)


def test_a_run_without_findings_is_good_and_names_its_seed() -> None:
    assert GOOD.is_good and GOOD.failures == []
    assert (GOOD.summary["registered"], GOOD.summary["seed"], GOOD.summary["lost"]) == (7, 3, 0)


@pytest.mark.parametrize(
    "kind", ["missed", "repeated", "phantom", "lost", "split_epochs", "epochs_back"]
)
def test_any_finding_makes_it_bad_and_is_told(kind: str) -> None:
    finding = Finding("reader", b"\x01" * 16, "never came")
    verdict = Verdict()
    setattr(verdict, kind, [finding] * 7)
    bad = replace(GOOD, verdict=verdict)
    assert not bad.is_good
    assert len(bad.failures) == 6 and bad.failures[-1] == f"{kind}: and 2 more"


def test_a_recovery_beyond_the_bar_makes_it_bad() -> None:
    slow = replace(GOOD, toll=Toll(recoveries_s=[(29.0, "kill a"), (31.0, "kill b")]))
    assert slow.failures == ["recovery took 31.0 s after: kill b"]
    assert slow.summary["recovery_s_max"] == 31.0


def test_a_failed_user_makes_it_bad_and_a_server_that_ended_without_its_postgres_does_not() -> None:
    assert not replace(GOOD, problems=["sensors-1: exit code 1"]).is_good
    assert replace(GOOD, deaths={"server-1": 2}).is_good


def test_an_order_that_no_server_may_take_and_one_did_makes_it_bad() -> None:
    bad = replace(GOOD, given=Given(wrong_taken=["server-1 took it"]))
    assert bad.failures == ["server-1 took it"]
    assert bad.summary["moves"]["orders"]["wrong_taken"] == 1
