"""What is refused because its answer would come too late."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.cluster.load import Load
from utuple.model.columns import columns_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.server.config import ServerConfig
from utuple.server.writing.backpressure import Backlog, Turn, Verdict
from utuple.server.writing.request import Request

FAMILY = Family("truck", "load")
CONFIG = ServerConfig("A", "127.0.0.1:0", "memory", ("none",), max_queued_rows=10_000)


def events(rows: int, *, retry: bool = False) -> Request:
    event = UTuple(b"e" * 16, FAMILY, Exact("t1", 1), {}, None, 60)
    return Request(retry, columns_of([event] * rows))


@pytest.mark.parametrize(
    ("backlog", "rows", "within_s", "retry", "is_taken"),
    [
        pytest.param(Backlog(0, 0, 0, 100.0), 900, 0.1, False, True, id="nobody before it"),
        pytest.param(Backlog(50, 0, 20, None), 10, 0.1, False, True, id="rate unknown"),
        pytest.param(Backlog(50, 0, 20, 100.0), 10, inf, False, True, id="within a second"),
        pytest.param(Backlog(50, 0, 60, 100.0), 10, inf, False, False, id="after a second"),
        pytest.param(Backlog(50, 0, 60, 100.0), 10, 2.0, True, True, id="a retry in time"),
        pytest.param(Backlog(50, 0, 60, 100.0), 10, 1.0, True, False, id="a retry too late"),
        pytest.param(Backlog(50, 0, 20, 100.0), 10, 0.8, False, True, id="just in time"),
        pytest.param(Backlog(50, 0, 20, 100.0), 11, 0.8, False, False, id="too late by its size"),
        pytest.param(Backlog(9_995, 0, 0, None), 6, inf, True, False, id="no room"),
        pytest.param(Backlog(1, 257 << 20, 0, None), 1, inf, False, False, id="too many bytes"),
    ],
)
def test_a_newcomer_is_taken_if_it_can_be_answered_in_time(
    backlog: Backlog, rows: int, within_s: float, retry: bool, is_taken: bool
) -> None:
    assert backlog.accepts(events(rows, retry=retry), 0, within_s, CONFIG) is is_taken


def test_a_refused_caller_is_asked_to_wait_for_what_is_being_written_too() -> None:
    load = Load(queued=10, service_per_s=1_000.0)
    assert Backlog(10, 0, 90, 100.0).refusal(load).retry_after_s == pytest.approx(1.0)
    assert Backlog(10, 0, 90, None).refusal(load).retry_after_s == pytest.approx(0.1)


def test_a_turn_ends_before_someone_in_it_would_be_answered_too_late() -> None:
    turn = Turn(100.0, 1_000.0)
    assert turn.judge(500, 101.0) is Verdict.JOINS
    assert turn.judge(500, 105.0) is Verdict.JOINS
    assert turn.judge(1, 105.0) is Verdict.LATER, "the first would have to wait longer"
    assert turn.judge(300, 100.2) is Verdict.LATE
    assert Turn(100.0, 1_000.0, ahead_rows=600).judge(500, 101.0) is Verdict.LATE
    assert Turn(100.0, None).judge(10**6, 100.5) is Verdict.JOINS, "nobody knows how long it takes"
    assert Turn(100.0, None).judge(1, 99.5) is Verdict.LATE


CALLS = st.lists(st.tuples(st.integers(1, 500), st.floats(0, 3) | st.just(inf)))


@given(CALLS, st.floats(10, 10_000), st.integers(0, 500))
def test_whoever_joins_a_turn_is_done_in_time(
    calls: list[tuple[int, float]], rate_per_s: float, ahead_rows: int
) -> None:
    turn = Turn(0.0, rate_per_s, ahead_rows)
    joined = [call for call in calls if turn.judge(*call) is Verdict.JOINS]
    rows = ahead_rows + sum(rows for rows, _ in joined)
    assert all(rows / rate_per_s <= answer_by_s + 1e-9 for _, answer_by_s in joined)
