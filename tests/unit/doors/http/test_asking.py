"""What a request asks for, and who may ask at all."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import QueryParams

from utuple import InvalidInput
from utuple.doors.http.guarding import foreign
from utuple.doors.http.problems import Problem, problem_of, shown_value
from utuple.doors.http.verbs.asking import command_of, flag, seconds, template_of, whole
from utuple.doors.http.verbs.formats import chosen


@pytest.mark.parametrize(
    ("accept", "format_"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/*", "text/csv"),
        ("application/x-ndjson;q=0.5, text/csv;q=0.9", "text/csv"),
        ("image/png, application/x-ndjson", "application/x-ndjson"),
        ("text/csv;q=0, */*;q=0.1", "application/json"),
    ],
)
def test_the_best_of_what_is_accepted_is_chosen(accept: str, format_: str) -> None:
    assert chosen(accept) == format_


@pytest.mark.parametrize(
    "query",
    ["type=t", "subject=a&subject=b&type=t", "subject=a&type=t&x=1", "subject=a&type=t&since=soon"],
)
def test_a_wrong_template_is_refused(query: str) -> None:
    with pytest.raises((Problem, InvalidInput)):
        template_of(QueryParams(query))


def test_numbers_flags_and_durations_of_a_query() -> None:
    query = QueryParams("limit=5&newest=true&timeout=1m&bad=x")
    assert (whole(query, "limit"), flag(query, "newest"), seconds(query, "timeout")) == (
        5,
        True,
        60,
    )
    for read in (whole, flag):
        with pytest.raises(Problem, match="bad"):
            read(query, "bad")


@pytest.mark.parametrize(
    "said",
    [
        {"subject": "a", "type": "t"},
        {"subject": "a", "type": "t", "data": []},
        {"subject": "a", "type": "t", "data": {}, "address": 5},
        {"subject": "a", "type": "t", "data": {}, "area": [1, 2, 3]},
        {"subject": "a", "type": "t", "data": {}, "colour": "red"},
    ],
)
def test_a_wrong_command_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(Problem):
        command_of(said)


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({b"host": b"127.0.0.1:7480"}, False),
        ({b"host": b"localhost", b"origin": b"http://localhost"}, False),
        ({b"host": b"[::1]:7480"}, False),
        ({b"host": b"evil.example"}, True),
        ({}, True),
        ({b"host": b"127.0.0.1:7480", b"origin": b"http://evil.example"}, True),
        ({b"host": b"127.0.0.1:7480", b"origin": b"null"}, True),
        ({b"host": b"127.0.0.1", b"sec-fetch-site": b"cross-site"}, True),
        (
            {
                b"host": b"127.0.0.1",
                b"sec-fetch-site": b"cross-site",
                b"sec-fetch-mode": b"navigate",
            },
            False,
        ),
    ],
)
def test_other_sites_are_told_by_host_and_origin(
    headers: dict[bytes, bytes], is_foreign: bool
) -> None:
    assert bool(foreign(headers)) is is_foreign


def test_a_value_is_shown_short_and_as_json() -> None:
    assert [shown_value(one) for one in (None, True, 5, 1.5, float("nan"), "x", b"y")] == [
        *(None, True, 5, 1.5, "nan", "x", "b'y'")
    ]
    assert len(str(shown_value("x" * 10_000))) < 300


def test_a_bug_is_not_told_in_detail() -> None:
    assert problem_of(RuntimeError("secret")).body["detail"] == "see its log"
