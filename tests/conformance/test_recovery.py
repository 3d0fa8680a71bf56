"""A server that starts again has everything back before it accepts anything (design, 4.1)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies as some
from tests.conformance.building import (
    SERVER,
    Place,
    batch,
    device,
    event,
    formal,
    ids_found,
    stored,
)
from tests.strategies import NOW_US
from utuple.model.columns import NEVER_US
from utuple.model.utuple import UTuple
from utuple.store.contract import (
    FormalPosition,
    Recovered,
    Store,
    StoreRefused,
    StoreUnavailable,
    Transaction,
)
from utuple.store.memory import MemoryStore


async def test_an_empty_store_has_nothing(place: Place) -> None:
    assert await place.make().open(SERVER, NOW_US) == Recovered()


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    templates=st.lists(
        some.event_formals() | some.command_actuals(), max_size=15, unique_by=lambda one: one.id
    )
)
async def test_templates_come_back_as_they_were(place: Place, templates: list[UTuple]) -> None:
    first = place.make()
    before = [kept.utuple.id for kept in (await first.open(SERVER, NOW_US)).templates]
    kept = [stored(one, seq, NOW_US + 10 + seq) for seq, one in enumerate(templates, 1)]
    await first.commit(Transaction(len(kept), templates=kept, cancelled=before))
    await first.close()
    second = place.make()
    recovered = await second.open(SERVER, NOW_US)
    assert list(recovered.templates) == kept
    await second.close()


async def test_those_that_were_attached_come_back_whatever_the_time_and_cfs_are_told_apart(
    place: Place, store: Store
) -> None:
    held, left, thing, other = formal(), formal(), device(lifetime_s=0.5), device(lifetime_s=0.5)
    await store.commit(Transaction(2, templates=[stored(held), stored(left)]))
    await store.commit(Transaction(4, devices=[batch([thing, other], 3)]))
    await store.commit(Transaction(4, renewed=[(held.id, NEVER_US), (thing.id, NEVER_US)]))
    await store.close()
    again = place.make()
    recovered = await again.open(SERVER, NOW_US + 10**15)
    assert [kept.packed.id for kept in recovered.templates] == [held.id]
    assert dict(recovered.held_devices) == {thing.id: 500_000}
    await again.close()


async def test_the_expired_do_not_come_back(place: Place, store: Store) -> None:
    dead, alive, thing = formal(), formal(), device(lifetime_s=1.0)
    now_us = NOW_US + 1_000_000
    await store.commit(
        Transaction(
            3,
            devices=[batch([thing], 3)],
            templates=[stored(dead, 1, now_us), stored(alive, 2, now_us + 1)],
            positions=[FormalPosition(one.id, "", 1) for one in (dead, alive, thing)],
        )
    )
    await store.close()
    recovered = await place.make().open(SERVER, now_us)
    assert list(recovered.templates) == [stored(alive, 2, now_us + 1)]
    assert list(recovered.positions) == [FormalPosition(alive.id, "", 1)]


async def test_what_was_committed_is_found_after_a_restart(place: Place, store: Store) -> None:
    one = event(data={"kg": 1})
    await store.commit(Transaction(7, events=[batch([one], 7)]))
    await store.close()
    second = place.make()
    assert (await second.open(SERVER, NOW_US)).seq == 7
    assert await ids_found(second, formal()) == [one.id]


async def test_another_servers_store_is_refused_and_left_alone(place: Place, store: Store) -> None:
    await store.commit(Transaction(5))
    await store.close()
    with pytest.raises(StoreRefused, match="server-1"):
        await place.make().open("server-2", NOW_US)
    assert (await place.make().open(SERVER, NOW_US)).seq == 5


async def test_a_store_that_is_not_open_says_so(place: Place) -> None:
    store = place.make()
    with pytest.raises(StoreUnavailable) as caught:
        await store.commit(Transaction(1))
    assert not caught.value.maybe_committed
    with pytest.raises(StoreUnavailable):
        await ids_found(store, formal())
    await store.open(SERVER, NOW_US)
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.commit(Transaction(1))


@pytest.mark.parametrize("is_stored", [False, True])
async def test_the_twin_fails_when_told_and_opens_again(is_stored: bool) -> None:
    store = MemoryStore()
    await store.open(SERVER, NOW_US)
    one = event()
    store.fail_next_commit(maybe_committed=True, stored=is_stored)
    with pytest.raises(StoreUnavailable) as caught:
        await store.commit(Transaction(1, events=[batch([one])]))
    assert caught.value.maybe_committed
    with pytest.raises(StoreUnavailable):
        await store.commit(Transaction(2))
    assert (await store.open(SERVER, NOW_US)).seq == int(is_stored)
    assert await ids_found(store, formal()) == ([one.id] if is_stored else [])
    await store.commit(Transaction(2))
