"""A page is the first matches by time and id, or the last: the same as sorting all that match."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies as some
from tests.conformance.building import (
    HOUR_S,
    batch,
    event,
    formal,
    fresh_family,
    keep,
    new_id,
)
from tests.strategies import NOW_US
from utuple.model.area import Circle
from utuple.model.match import matches
from utuple.model.utuple import Exact, UTuple
from utuple.store.contract import Key, Page, Store, Transaction
from utuple.store.postgres.searching import paging

shared_store = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
MANY = 10_000


def key_of(one: UTuple) -> Key:
    assert isinstance(one.metadata, Exact)
    return one.metadata.time_us, one.id


async def keys(
    store: Store,
    asked: UTuple,
    rows: int = MANY,
    *,
    newest_first: bool = True,
    after: Key | None = None,
    now_us: int = NOW_US,
) -> list[Key]:
    page = Page(asked, rows, newest_first, after, now_us)
    return [
        key
        async for columns in store.page(page)
        for key in zip(columns.times_us, columns.each_id(), strict=True)
    ]


@shared_store
@given(question=st.data(), newest_first=st.booleans())
async def test_a_page_is_the_beginning_of_all_matches_in_order(
    store: Store, question: st.DataObject, newest_first: bool
) -> None:
    rows = st.lists(some.event_actuals(), min_size=1, max_size=20, unique_by=lambda one: one.id)
    drawn, family = question.draw(rows), fresh_family()
    times = st.sampled_from([NOW_US, NOW_US - 1, NOW_US + 7])
    events = [
        replace(
            one,
            family=family,
            lifetime_s=question.draw(st.sampled_from([60.0, HOUR_S, 30 * 86_400.0])),
            metadata=replace(one.metadata, time_us=question.draw(times)),  # type: ignore[arg-type]
        )
        for one in drawn
    ]
    await keep(store, *events)
    near = question.draw(st.sampled_from(events))
    for asked in (formal(family=family), question.draw(some.formal_near(near))):
        all_of_them = sorted(map(key_of, filter(lambda one: matches(one, asked), events)))
        if newest_first:
            all_of_them.reverse()
        most = question.draw(st.integers(1, 22))
        assert await keys(store, asked, most, newest_first=newest_first) == all_of_them[:most]
        for at, after in enumerate(all_of_them):
            found = await keys(store, asked, most, newest_first=newest_first, after=after)
            assert found == all_of_them[at + 1 : at + 1 + most]


@pytest.mark.parametrize("newest_first", [False, True])
async def test_pages_one_after_another_give_everything_once(
    store: Store, newest_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "FIRST_ROWS", 3)
    family = fresh_family()
    events = [
        event(f"t-{n}", NOW_US - n % 7, (35.0, 139.0 + n / 10_000), {"n": n}, family=family)
        for n in range(100)
    ]
    await keep(store, *events)
    for asked in (
        formal(family=family),
        formal(family=family, area=Circle(35.0, 139.0, 400)),
    ):
        expected = sorted(key_of(one) for one in events if matches(one, asked))
        assert len(expected) > 0
        expected = expected[::-1] if newest_first else expected
        assert await keys(store, asked, newest_first=newest_first) == expected
        found: list[Key] = []
        while more := await keys(
            store, asked, 9, newest_first=newest_first, after=found[-1] if found else None
        ):
            found += more
        assert found == expected


async def test_a_page_holds_what_drains_have_brought_and_nothing_hidden_or_expired(
    store: Store,
) -> None:
    family, move, other = fresh_family(), new_id(), new_id()
    own, brought, hidden = (event(family=family, time_us=NOW_US + n) for n in range(3))
    short = event(family=family, time_us=NOW_US + 9, lifetime_s=1.0)
    await keep(store, own, short)
    await store.commit(Transaction(2, events=[batch([brought], 7, NOW_US, "x", move)]))
    await store.commit(Transaction(2, events=[batch([hidden], 8, NOW_US, "y", other)]))
    asked, later_us = formal(family=family), NOW_US + 1_000_000
    assert await keys(store, asked) == [key_of(short), key_of(own)]
    await store.commit(Transaction(2, revealed=[move]))
    assert await keys(store, asked, now_us=later_us) == [key_of(brought), key_of(own)]
    assert await keys(store, asked, 1, now_us=later_us) == [key_of(brought)]


async def test_of_an_unknown_family_there_is_nothing(store: Store) -> None:
    assert await keys(store, formal(family=fresh_family())) == []


async def test_large_payloads_come_whole(store: Store) -> None:
    family = fresh_family()
    events = [
        event(time_us=NOW_US + n, data={"n": n, "x": "x" * 300_000}, family=family)
        for n in range(12)
    ]
    await keep(store, *events)
    page = Page(formal(family=family), 10, True, None, NOW_US)
    sizes = [len(one) async for columns in store.page(page) for one in columns.payloads]
    assert len(sizes) == 10 and min(sizes) > 300_000
