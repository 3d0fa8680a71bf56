"""Recordings as they are found in the field become events."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from utuple import InvalidInput
from utuple.cli.replaying.command import slices
from utuple.cli.replaying.recording import event_of, events_of, heads_of, instant, mapped, value_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_columns_are_found_by_the_names_people_use() -> None:
    how = mapped(["Vehicle_ID", "timestamp", "Latitude", "lng", "speed"], "bus", "speed")
    row = {"Vehicle_ID": "7", "timestamp": "2026-01-31T12:00:00Z", "Latitude": "1", "lng": "2"}
    assert event_of({**row, "speed": "3.5"}, how) == {
        "subject": "bus",
        "type": "speed",
        "address": "7",
        "time": NOON,
        "position": (1.0, 2.0),
        "data": {"speed": 3.5},
    }
    assert "position" not in event_of({**row, "Latitude": "", "speed": ""}, how)


@pytest.mark.parametrize(
    ("heads", "field"),
    [(["time"], "address"), (["id", "time"], "subject"), (["id", "time", "lat"], "position")],
)
def test_a_table_that_lacks_something_is_refused_by_name(heads: list[str], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        mapped(heads, *(("s", "t") if field == "position" else ("", "")))
    assert caught.value.field == field


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00", "2026-01-31T13:00:00+01:00", "1769860800", "1769860800000"]
)
def test_instants_are_read_in_every_usual_form(text: str) -> None:
    assert instant(text) == NOON


def test_values_are_numbers_where_they_are_and_text_otherwise() -> None:
    assert [value_of(one) for one in ("1", "1.5", "true", "nan", "x")] == [1, 1.5, True, "nan", "x"]


def test_a_row_that_cannot_be_an_event_is_a_complaint(tmp_path: Path) -> None:
    path = tmp_path / "r.csv.gz"
    path.write_bytes(
        gzip.compress(b"id,time,subject,type\na,never,s,t\na,2026-01-31T12:00:00Z,s,t\n")
    )
    wrong, good = events_of(path, mapped(heads_of(path)))
    assert isinstance(wrong, InvalidInput)
    assert good == {"subject": "s", "type": "t", "address": "a", "time": NOON, "data": {}}


def test_rows_are_due_as_far_apart_as_they_were_divided_by_the_speed() -> None:
    rows = [{"time": NOON + timedelta(seconds=s)} for s in (0, 1, 60, 59, 120)]
    due = [(due_s, len(events)) for due_s, events, _ in slices(iter(rows), 60)]
    assert due == [(0.0, 2), (1.0, 2), (2.0, 1)]
    assert [len(events) for _, events, _ in slices(iter(rows), 0)] == [5]


@pytest.mark.parametrize("text", ["nan", "inf", "1e300", "-1e18", "99999999999999999999"])
def test_an_instant_beyond_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        instant(text)
    assert (caught.value.field, caught.value.value) == ("time", text)


def test_a_row_that_is_too_short_or_too_long_does_not_end_the_others(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f'id,subject,type,time\na\nb,s,t,"{"x" * 200_000}"\nc,s,t,1769860800\n')
    short, long, good = events_of(path, mapped(heads_of(path)))
    assert isinstance(short, InvalidInput) and short.field == "time"
    assert isinstance(long, InvalidInput) and long.field == "line 3"
    assert not isinstance(good, InvalidInput) and good["time"] == NOON


@pytest.mark.parametrize("broken", [b"", b"id,time\n\xff\xfe,1\n"])
def test_a_file_that_breaks_off_is_told_after_what_came_before(
    tmp_path: Path, broken: bytes
) -> None:
    path = tmp_path / ("r.csv" if broken else "r.csv.gz")
    rows = b"id,subject,type,time\n" + b"a,s,t,1769860800\n" * 50_000
    path.write_bytes(rows + broken if broken else gzip.compress(rows)[:-40])
    *good, last = events_of(path, mapped(heads_of(path)))
    assert isinstance(last, InvalidInput) and last.field == "FILE"
    assert len(good) > 20_000 and not any(isinstance(one, InvalidInput) for one in good)
