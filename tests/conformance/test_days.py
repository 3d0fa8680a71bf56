"""Weeks of readings whose lifetimes are mixed: what lives is found, what is dead is gone, and leaves stay few."""

from __future__ import annotations

import random

import psycopg

from tests.conformance.building import SECOND_US, batch, chunks, event, formal, ids_of
from tests.strategies import NOW_US
from utuple.model.columns import lifetime_us
from utuple.store.contract import Store, Transaction
from utuple.store.postgres.store import PostgresStore

DAY_S = 86_400.0
LIFETIMES_S = (0.2, 1.0, 299.9, 300.0, 3_600.0, 3_600.1, DAY_S, 7 * DAY_S, 30 * DAY_S, 800 * DAY_S)
"""On both sides of the edges between the widths of leaves."""
STEPS = 90
STEP_US = 12 * 3_600 * SECOND_US
MOST_LEAVES = 60
"""One for each event that lives at the end would be more than a hundred."""


async def _live_through(store: Store) -> None:
    dice = random.Random(14)
    alive: dict[bytes, int] = {}
    seq = 0
    for step in range(STEPS):
        now_us = NOW_US + step * STEP_US + dice.randrange(STEP_US)
        events = [event(lifetime_s=lifetime_s) for lifetime_s in dice.sample(LIFETIMES_S, 6)]
        written = batch(events, seq + 1, now_us)
        seq += len(events)
        await store.commit(Transaction(seq, events=[written]))
        alive |= {one.id: now_us + lifetime_us(one.lifetime_s) for one in events}
        expected = [id_ for id_, expires_us in alive.items() if expires_us > now_us]
        assert ids_of(await chunks(store, formal(), now_us=now_us)) == expected
        await store.collect(now_us)
        assert ids_of(await chunks(store, formal(), now_us=now_us)) == expected


async def test_weeks_of_mixed_lifetimes_are_found_while_they_live(store: Store) -> None:
    await _live_through(store)


async def test_weeks_of_mixed_lifetimes_leave_few_leaves_behind(
    real: PostgresStore, database: str
) -> None:
    await _live_through(real)
    with psycopg.connect(database) as asking:
        found = asking.execute("SELECT count(*) FROM pg_inherits").fetchone()
    assert found is not None
    assert 0 < found[0] <= MOST_LEAVES
