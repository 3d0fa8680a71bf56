"""What a server bears, by cause and by family: what is counted once, where, and for how long."""

from __future__ import annotations

from array import array
from collections import Counter

import pytest

from utuple.cluster.load import NO_LOAD, LoadByCause
from utuple.model.columns import columns_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.server.matching.matched import Matches
from utuple.server.writing.transaction import PreparedBatch
from utuple.server.writing.workload import Workload
from utuple.store.contract import Batch, Transaction

A, B = Family("truck", "load"), Family("room", "heat")


def batch(events: dict[Family, int], changes: dict[Family, int] | None = None) -> PreparedBatch:
    prepared = PreparedBatch(Transaction(0), [])
    prepared.accepted, prepared.changes = Counter(events), Counter(changes or {})
    prepared.rows = sum(events.values()) + sum((changes or {}).values())
    return prepared


def test_section_3_4_the_processing_load_is_the_writer_searches_and_deliveries_together() -> None:
    workload = Workload(0.0)
    workload.worked(8.0, batch({A: 100}), 9.0)
    workload.searched(A, 0.5, 9.2)
    workload.delivered([A], 0.25, 9.4, stored=False)
    assert workload.by_cause(10.0) == LoadByCause(0.2, 0.1, 0.05)
    assert workload.load(7, 10.0, 3).busy == pytest.approx(0.35)
    assert (workload.load(7, 10.0, 3).queued, workload.load(7, 10.0, 3).templates) == (7, 3)
    assert workload.by_cause(60.0) == NO_LOAD


def test_an_ef_weighs_as_much_as_forty_eas_and_is_not_one_of_them() -> None:
    workload = Workload(0.0)
    workload.worked(8.0, batch({A: 40}, {B: 1}), 9.0)
    seen = workload.by_cause(10.0)
    assert seen.events == pytest.approx(0.1) == seen.searches
    families = workload.families.by_cause(9.0)
    assert families[A].events == families[B].searches > 0
    assert families[A].searches == families[B].events == 0


def test_what_is_delivered_while_a_batch_is_answered_is_not_counted_twice() -> None:
    workload = Workload(0.0)
    workload.delivered([A], 0.4, 8.5, stored=False)
    workload.begin_answers()
    workload.delivered([A], 0.3, 8.9, stored=False)
    workload.worked(8.0, batch({A: 1}), 9.0)
    assert workload.by_cause(10.0).total == pytest.approx((0.4 + 1.0) / 5)


def test_what_a_search_found_is_part_of_the_search_on_its_way_too() -> None:
    """Help would not relieve a server of it."""
    workload = Workload(0.0)
    workload.delivered([A], 0.5, 9.0, stored=True)
    assert workload.by_cause(10.0) == LoadByCause(0.0, 0.1, 0.0)


def test_searches_that_are_for_no_family_count_for_the_server_alone() -> None:
    workload = Workload(0.0)
    workload.searched("devices", 0.5, 9.0)
    assert workload.by_cause(10.0).searches == pytest.approx(0.1)
    assert workload.families.by_cause(10.0) == {}


def test_what_its_families_cost_adds_up_to_what_the_server_bears_cause_by_cause() -> None:
    """Else a server would be busy mostly with EAs, and its only section mostly with searches."""
    workload = Workload(0.0)
    workload.searched(A, 2.0, 4.0)
    workload.worked(8.0, batch({A: 30, B: 10}), 9.5)
    for now_s in (9.5, 10.5, 13.0):
        found, whole = workload.by_family(now_s), workload.by_cause(now_s)
        assert sum(found.values(), NO_LOAD).each == pytest.approx(whole.each)
    last = workload.by_family(13.0)
    assert last[A].events == pytest.approx(3 * last[B].events) != 0
    assert workload.by_family(60.0).get(A, NO_LOAD) == NO_LOAD


def test_a_family_that_is_no_longer_used_is_forgotten() -> None:
    workload = Workload(0.0)
    workload.worked(8.0, batch({A: 100}), 9.0)
    assert workload.families.per_s(9.0) == {A: 20.0}
    assert workload.families.per_s(14.0)[A] == pytest.approx(20.0 / 2.718, rel=0.01)
    for look in (workload.families.per_s, workload.families.by_cause):
        look(300.0)
        assert look(301.0) == {}


def test_the_size_of_a_family_s_events_is_that_of_a_few_of_each_batch() -> None:
    workload = Workload(0.0)

    def registered(family: Family, sizes: list[int], now_s: float) -> None:
        prepared = batch({family: len(sizes)})
        rows = [
            UTuple(b"i" * 16, family, Exact("a", 0), {"x": "y" * (size - 8)}, None, 60.0)
            for size in sizes
        ]
        prepared.events = [(Batch(columns_of(rows), array("Q"), array("q")), Matches())]
        workload.worked(now_s - 0.1, prepared, now_s)

    registered(A, [20] * 1_000, 1.0)
    registered(B, [10, 30], 1.0)
    assert workload.families.mean_bytes(1.0) == {A: pytest.approx(20), B: pytest.approx(20)}
    registered(A, [40] * 1_000, 1.0)
    assert workload.families.mean_bytes(1.0)[A] == pytest.approx(30), "each batch weighs the same"
    assert workload.families.mean_bytes(1e6) == {}, "nothing is left of it, not even to divide by"


def test_much_small_work_is_kept_as_little() -> None:
    workload = Workload(0.0)
    for number in range(10_000):
        workload.delivered([A], 1e-5, 10.0 + number * 1e-5, stored=False)
    assert len(workload._parts) < 50
    assert workload.by_cause(10.1).deliveries == pytest.approx(0.1 / 5)
