"""Columns: many uTuples, one sequence a field, and each of them back again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.model.columns import Columns, columns_of, concatenate
from utuple.model.utuple import Kind, UTuple

events = st.lists(some.event_actuals(), max_size=5)
devices = st.lists(some.command_formals(), max_size=5)


def rows_of(columns: Columns, kind: Kind = Kind.EA) -> list[str]:
    """As text: 1 and True are equal in Python, and must not be here."""
    return [repr(columns.utuple_at(row, kind)) for row in range(len(columns))]


def texts(utuples: list[UTuple]) -> list[str]:
    return rows_of(columns_of(utuples), utuples[0].kind) if utuples else []


@given(events)
def test_events_come_back_from_their_columns(rows: list[UTuple]) -> None:
    columns = columns_of(rows)
    assert [columns.utuple_at(row) for row in range(len(columns))] == rows
    assert list(columns.each_id()) == [row.id for row in rows]
    assert not columns.readers


@given(devices)
def test_devices_come_back_from_their_columns(rows: list[UTuple]) -> None:
    columns = columns_of(rows)
    assert [columns.utuple_at(row, Kind.CF) for row in range(len(columns))] == rows


@given(events)
def test_families_are_numbered_in_order_of_appearance(rows: list[UTuple]) -> None:
    columns = columns_of(rows)
    assert list(columns.families) == list(dict.fromkeys(row.family for row in rows))


@given(events, st.data())
def test_taking_rows_gives_those_rows_in_that_order(
    rows: list[UTuple], draw: st.DataObject
) -> None:
    columns = columns_of(rows)
    chosen = draw.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    assert rows_of(columns.take(chosen)) == [rows_of(columns)[row] for row in chosen]


@given(devices, st.data())
def test_taking_devices_takes_their_readers_along(rows: list[UTuple], draw: st.DataObject) -> None:
    columns = columns_of(rows)
    chosen = draw.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    assert rows_of(columns.take(chosen), Kind.CF) == [rows_of(columns, Kind.CF)[r] for r in chosen]


@given(st.lists(events, max_size=4))
def test_concatenating_batches_is_the_batch_of_all_rows(batches: list[list[UTuple]]) -> None:
    joined = concatenate([columns_of(batch) for batch in batches])
    assert rows_of(joined) == [text for batch in batches for text in texts(batch)]


@given(st.lists(devices, max_size=4))
def test_concatenating_devices_keeps_who_reads_which(batches: list[list[UTuple]]) -> None:
    joined = concatenate([columns_of(batch) for batch in batches])
    assert rows_of(joined, Kind.CF) == [text for batch in batches for text in texts(batch)]


def test_no_batches_are_an_empty_batch() -> None:
    assert len(concatenate([])) == len(columns_of([])) == len(Columns()) == 0


@given(some.event_actuals())
def test_a_row_without_a_position_stays_without(event: UTuple) -> None:
    columns = columns_of([event])
    assert columns.position_at(0) == event.metadata.position  # type: ignore[union-attr]
