"""A few EAs at a time, after others of their family: PostgreSQL takes them as one statement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies as some
from tests.conformance.building import (
    SERVER,
    Place,
    batch,
    chunks,
    event,
    formal,
    fresh_family,
    keep,
)
from tests.strategies import NOW_US
from utuple.errors import UTupleError
from utuple.model.columns import lifetime_us
from utuple.model.utuple import UTuple
from utuple.store.contract import FormalPosition, Store, Transaction
from utuple.store.postgres.store import PostgresStore
from utuple.store.postgres.writing.insert import MOST_ROWS, small_insert_of


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(some.event_actuals(), min_size=1, max_size=6, unique_by=lambda one: one.id))
async def test_they_are_kept_as_they_are(place: Place, drawn: list[UTuple]) -> None:
    family = fresh_family()
    kept = [replace(one, family=family, lifetime_s=3_600.0) for one in drawn]
    first = place.make()
    seq = (await first.open(SERVER, NOW_US)).seq
    for number, one in enumerate([event(family=family), *kept], seq + 1):
        await keep(first, one, first_seq=number)
    await first.close()
    second = place.make()
    assert (await second.open(SERVER, NOW_US)).seq == seq + 1 + len(kept)
    found = await chunks(second, formal(family=family), after=seq + 1)
    end_us = NOW_US + lifetime_us(3_600.0)
    assert await chunks(second, formal(family=family), now_us=end_us) == []
    late = await chunks(second, formal(family=family), after=seq + 1, now_us=end_us - 1)
    await second.close()
    rows = [(part, row) for part in found for row in range(len(part))]
    assert [part.columns.utuple_at(row) for part, row in rows] == _without_lifetimes(kept)
    assert [part.seqs[row] for part, row in rows] == [*range(seq + 2, seq + 2 + len(kept))]
    assert sum(map(len, late)) == len(kept)


async def test_several_batches_of_several_families_are_one_commit(store: Store) -> None:
    one, other = fresh_family(), fresh_family()
    mixed = [event("a", family=one), event("b", family=other)]
    await keep(store, *mixed)
    more = [event("c", family=other), event("d", family=one)]
    last = [event("e", family=one)]
    await store.commit(Transaction(5, [batch(more, 3), batch(last, 5)]))
    for family, wanted in ((one, [mixed[0], more[1], *last]), (other, [mixed[1], more[0]])):
        found = await chunks(store, formal(family=family))
        rows = [part.columns.utuple_at(row) for part in found for row in range(len(part))]
        assert rows == _without_lifetimes(wanted)


@pytest.mark.parametrize("ready", [(0,), (1,), (0, 1)])
async def test_what_was_made_ready_is_stored_once_and_only_when_it_is_committed(
    store: Store, ready: tuple[int, ...]
) -> None:
    family = fresh_family()
    await keep(store, event("known", family=family))
    many = [[event(f"{at}-{n}", family=family) for n in range(MOST_ROWS + 1)] for at in (0, 1)]
    commits, seq = [], 1
    for some_events in many:
        seq += len(some_events)
        commits.append(Transaction(seq, [batch(some_events, seq - MOST_ROWS)]))
    for at in ready:
        store.make_ready(commits[at])
    assert sum(map(len, await chunks(store, formal(family=family)))) == 1
    for commit in commits:
        await store.commit(commit)
    found = await chunks(store, formal(family=family))
    rows = [part.columns.utuple_at(row) for part in found for row in range(len(part))]
    assert rows[1:] == _without_lifetimes([*many[0], *many[1]])


async def test_what_was_made_ready_is_not_stored_if_the_rest_is_refused(
    real: PostgresStore,
) -> None:
    family = fresh_family()
    await keep(real, event("known", family=family))
    many = [event(f"{n}", family=family) for n in range(MOST_ROWS + 1)]
    wrong = Transaction(99, [batch(many, 2)], positions=[FormalPosition(b"short", "", 1)])
    real.make_ready(wrong)
    with pytest.raises(UTupleError):
        await real.commit(wrong)
    await real.open(SERVER, NOW_US)
    assert sum(map(len, await chunks(real, formal(family=family)))) == 1


def _without_lifetimes(utuples: Iterable[UTuple]) -> list[UTuple]:
    """As a search gives them: what is left of a lifetime is in the expiry."""
    return [replace(one, lifetime_s=0.0) for one in utuples]


def test_more_than_that_is_left_to_copy() -> None:
    family = fresh_family()
    known = {family: 1}
    rows = [event(family=family) for _ in range(MOST_ROWS)]
    assert small_insert_of(Transaction(MOST_ROWS, [batch(rows)]), known) is not None
    for other in (
        Transaction(MOST_ROWS + 1, [batch([*rows, event(family=family)])]),
        Transaction(1, [batch(rows[:1])], cancelled=[b"0" * 16]),
        Transaction(1, [batch([event(family=fresh_family())])]),
        Transaction(1, [batch(rows[:1], origin="server-2")]),
        Transaction(2, [batch([rows[0], event(family=family, lifetime_s=86_400.0)])]),
        Transaction(2),
    ):
        assert small_insert_of(other, known) is None
