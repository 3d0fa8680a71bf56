"""One search for many EFs gives each what its own search would."""

from __future__ import annotations

from array import array
from random import Random

from utuple.model.columns import columns_of
from utuple.model.condition import Equal, at_least
from utuple.model.match import matches
from utuple.model.packed import packed
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.server.delivering.cursor import Reading
from utuple.server.delivering.reading.ready import Ready
from utuple.server.delivering.reading.together import Together, near
from utuple.store.contract import Batch, StoredTemplate

FAMILY = Family("truck", "load")
NOW_US = 10**15


def ef(number: int, template: Template, kg: int = 0) -> StoredTemplate:
    where = {"kg": at_least(kg)} if kg else {}
    half = UTuple(number.to_bytes(16, "big"), FAMILY, template, None, where, 600, "r")
    return StoredTemplate(packed(half), number, NOW_US - 1)


def events(count: int) -> Batch:
    dice = Random(1)
    rows = [
        UTuple(
            bytes([1]) + number.to_bytes(15, "big"),
            FAMILY,
            Exact(f"truck-{dice.randrange(4)}", NOW_US),
            {"kg": dice.randrange(9)},
            None,
            600,
        )
        for number in range(count)
    ]
    return Batch(columns_of(rows), array("Q", range(101, 101 + count)), array("q"))


def test_each_ef_is_given_what_it_matches_and_no_more() -> None:
    templates = [
        ef(1, Template()),
        ef(2, Template(address=Equal("truck-2"))),
        ef(3, Template(), kg=5),
        ef(4, Template(address=Equal("truck-3")), kg=4),
        ef(5, Template(address=Equal("car"))),
    ]
    readings = [Reading(one.packed.id, 100, 150) for one in templates]
    batch = events(50)
    found = Together(readings, templates).found(batch, NOW_US)
    for one in templates:
        every = (batch.columns.utuple_at(row) for row in range(len(batch)))
        want = [row for row, event in enumerate(every) if matches(event, one.utuple)]
        assert list(found.get(one.packed.id, ())) == want


def test_the_search_begins_where_the_last_of_them_is_and_is_for_anything_of_the_family() -> None:
    templates = [ef(1, Template(), kg=5), ef(2, Template(address=Equal("truck-2")))]
    readings = [Reading(templates[0].packed.id, 120, 150), Reading(templates[1].packed.id, 90, 150)]
    search = Together(readings, templates).search(7)
    assert (search.after, search.upto, search.now_us, search.origin) == (90, 150, 7, "")
    assert search.template.family == FAMILY and not search.template.where
    assert search.template.metadata == Template()


def test_who_is_far_behind_is_not_near() -> None:
    behind = [10, 20, 21, 500]
    readings = [Reading(bytes([n]) * 16, 1_000 - lag, 1_000) for n, lag in enumerate(behind)]
    assert near(readings, rows_each=5) == readings[:2]


def test_what_was_begun_beside_another_does_not_come_again() -> None:
    ready, one, other, late, alone = (
        Ready(),
        *(
            Reading(bytes([n]) * 16, 0, upto, together=together)
            for n, (upto, together) in enumerate([(9, "x"), (9, "x"), (10, "x"), (9, None)])
        ),
    )
    for reading in (one, other, late, alone):
        ready.put(reading)
    assert ready.pop(9, lambda _: True) == one
    assert ready.beside(one) == [other]
    ready.begin([other])
    assert ready.beside(alone) == []
    assert ready.pop(9, lambda _: True) == alone, "not what is not committed yet"
    assert ready.pop(9, lambda _: True) is None
    assert ready.pop(10, lambda _: True) == late
    assert not ready


def test_who_left_off_and_began_anew_is_read_once_from_where_it_is() -> None:
    ready = Ready()
    before, now = (Reading(b"f" * 16, after, 9, together="x") for after in (3, 5))
    ready.put(before)
    ready.put(now)
    assert ready.beside(Reading(b"g" * 16, 0, 9, together="x")) == [now]
    assert ready.pop(9, lambda one: one is now) is now
    assert ready.pop(9, lambda _: True) is None
