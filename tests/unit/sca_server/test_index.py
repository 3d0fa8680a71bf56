"""The index against a twin that scans a plain dictionary, and what it remembers of cancels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sca_server.index import BUCKET_US, DataTemplate, Device, Index
from utuple.errors import Conflict, Overloaded
from utuple.model.columns import NEVER_US
from utuple.model.utuple import Family

FAMILIES = (Family("aircon", "power"), Family("lamp", "dim"))
ADDRESSES = ("room-1", "room-2")
TEMPLATES = (DataTemplate(b"{}", None), DataTemplate(b'{"a":["any"]}', {}))
MINUTE_US = 60_000_000


def device(
    number: int, lifetime_us: int = MINUTE_US, content: tuple[int, int, int] = (0, 0, 0)
) -> Device:
    family, address, template = content
    return Device(
        bytes([number]) * 16,
        FAMILIES[family],
        ADDRESSES[address],
        TEMPLATES[template],
        "reader",
        lifetime_us,
    )


def index(most: int = 100, most_cancelled: int = 100) -> Index:
    return Index(most=most, most_cancelled=most_cancelled)


class Twin:
    """The same, the slow and obvious way."""

    def __init__(self) -> None:
        self.kept: dict[bytes, tuple[Device, int]] = {}
        self.cancelled: set[bytes] = set()

    def alive(self, id_: bytes, now_us: int) -> Device | None:
        found = self.kept.get(id_)
        return found[0] if found is not None and found[1] > now_us else None

    def put(self, new: Device, now_us: int) -> bool:
        known = self.alive(new.id, now_us)
        if known is not None and not known.is_same_as(new):
            return False
        if known is None or self.kept[new.id][1] != NEVER_US:
            self.kept[new.id] = (new, now_us + new.lifetime_us)
        else:
            self.kept[new.id] = (new, NEVER_US)
        self.cancelled.discard(new.id)
        return True

    def fill(self, new: Device, now_us: int) -> bool:
        if new.id in self.cancelled or self.alive(new.id, now_us) or not new.lifetime_us:
            return False
        self.kept[new.id] = (new, now_us + new.lifetime_us)
        return True

    def scan(self, family: Family, address: str, now_us: int) -> set[bytes]:
        return {
            id_
            for id_, (kept, expires_us) in self.kept.items()
            if (kept.family, kept.address) == (family, address) and expires_us > now_us
        }


numbers = st.integers(0, 3)
contents = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))
lifetimes_us = st.sampled_from([0, 1, MINUTE_US, 3 * MINUTE_US])
steps = st.one_of(
    st.tuples(st.just("put"), numbers, lifetimes_us, contents),
    st.tuples(st.just("fill"), numbers, lifetimes_us, contents),
    st.tuples(st.sampled_from(["remove", "hold", "let_go"]), numbers),
    st.tuples(st.just("pass"), st.sampled_from([1, MINUTE_US - 1, MINUTE_US, 5 * MINUTE_US])),
    st.tuples(st.just("expire"), st.integers(1, 3)),
)


def found_at(tried: Index, family: Family, address: str, now_us: int) -> list[bytes]:
    found, at = [], tried.at(family).get(address)
    while at is not None:
        if at.expires_us > now_us:
            found.append(at.id)
        at = at.next
    return found


def step(tried: Index, twin: Twin, what: tuple[object, ...], now_us: int) -> int:
    match what:
        case ("put", int(number), int(lifetime_us), tuple(content)):
            conflict = False
            try:
                tried.put(device(number, lifetime_us, content), now_us)
            except Conflict:
                conflict = True
            assert conflict is not twin.put(device(number, lifetime_us, content), now_us)
        case ("fill", int(number), int(lifetime_us), tuple(content)):
            new = device(number, lifetime_us, content)
            assert tried.fill(new, now_us) is twin.fill(new, now_us)
        case ("remove", int(number)):
            tried.remove(device(number).id)
            twin.kept.pop(device(number).id, None)
            twin.cancelled.add(device(number).id)
        case ("hold", int(number)) if twin.alive(device(number).id, now_us):
            tried.hold(device(number).id)
            twin.kept[device(number).id] = (twin.kept[device(number).id][0], NEVER_US)
        case ("let_go", int(number)) if known := twin.alive(device(number).id, now_us):
            tried.let_go(known.id, now_us)
            twin.kept[known.id] = (known, now_us + known.lifetime_us)
        case ("pass", int(some_us)):
            return now_us + some_us
        case ("expire", int(most)):
            assert tried.expire(now_us, most) <= most
    return now_us


@given(st.lists(steps, max_size=30))
def test_the_index_finds_what_a_scan_of_every_cf_finds(script: list[tuple[object, ...]]) -> None:
    tried, twin, now_us = index(), Twin(), 0
    for what in script:
        now_us = step(tried, twin, what, now_us)
        for family in FAMILIES:
            for address in ADDRESSES:
                found = found_at(tried, family, address, now_us)
                assert len(found) == len(set(found))
                assert set(found) == twin.scan(family, address, now_us)
        for number in range(4):
            known = tried.get(device(number).id, now_us)
            alive = twin.alive(device(number).id, now_us)
            assert (known is None) == (alive is None)
            assert known is None or (alive is not None and known.is_same_as(alive))
    later_us = now_us + BUCKET_US
    tried.expire(later_us, 1_000)
    ends_us = [end_us for _, end_us in twin.kept.values()]
    least, most = (sum(end_us > at_us for end_us in ends_us) for at_us in (later_us, now_us))
    assert least <= len(tried) <= most, "what has expired a minute ago is gone"


def test_an_index_without_devices_keeps_nothing_of_them() -> None:
    tried = index()
    for number in range(3):
        tried.put(device(number), 0)
    for number in (1, 0, 2):
        tried.remove(device(number).id)
    assert len(tried) == 0
    assert tried.at(FAMILIES[0]) == {}
    assert tried._buckets == {} and tried._by_family == {}


def test_a_cf_is_met_until_its_lifetime_ends_and_not_at_its_end() -> None:
    tried = index()
    tried.put(device(1, lifetime_us=5), now_us=100)
    assert tried.get(device(1).id, 104) is not None
    assert tried.get(device(1).id, 105) is None


def test_expired_cfs_are_collected_a_few_at_a_time() -> None:
    tried = index()
    for number in range(5):
        tried.put(device(number), 0)
    assert tried.expire(MINUTE_US + BUCKET_US - 1, 2) == 0, "their minute is not over"
    gone = [tried.expire(MINUTE_US + BUCKET_US, 2) for _ in range(4)]
    assert gone == [2, 2, 1, 0]


def test_a_cancel_is_remembered_against_a_refill_but_not_against_a_registration() -> None:
    tried = index()
    tried.remove(device(1).id)
    assert not tried.fill(device(1), 0)
    tried.put(device(1), 0)
    tried.expire(NEVER_US, 10)
    assert tried.fill(device(1), 0), "the registration took the cancel back"


def test_only_the_latest_cancels_are_remembered() -> None:
    tried = index(most_cancelled=2)
    for number in (1, 2, 3, 4, 3, 5):
        tried.remove(device(number).id)
    filled = [tried.fill(device(number), 0) for number in range(1, 6)]
    assert filled == [True, True, False, False, False]


def test_a_batch_beyond_the_limit_is_refused_whole_and_renewals_never_are() -> None:
    tried = index(most=2)
    tried.put(device(1), 0)
    tried.make_room([device(1).id, device(2).id, device(2).id])
    tried.put(device(2), 0)
    tried.make_room([device(1).id, device(2).id])
    with pytest.raises(Overloaded, match="at most 2 CFs"):
        tried.make_room([device(3).id])


def test_it_knows_how_many_each_identity_has() -> None:
    tried = index()
    for number, owner in ((1, "gate"), (2, "gate"), (3, "dispatch")):
        made = device(number)
        made.reader = f"{owner}/doors"
        tried.put(made, 0)
    tried.put(device(4), 0)
    again = device(1)
    again.reader = "gate/doors"
    tried.put(again, 0)
    assert (tried.kept_by("gate"), tried.kept_by("dispatch"), tried.kept_by("nobody")) == (2, 1, 0)
    tried.remove(device(1).id)
    tried.expire(2 * MINUTE_US + BUCKET_US, 100)
    assert (tried.kept_by("gate"), tried.kept_by("dispatch")) == (0, 0)


def test_a_cf_that_comes_after_it_was_cancelled_is_left_out_only_if_its_owner_said_so() -> None:
    """A refill may be carrying it still; whoever else knows its id has no say in it (law 8)."""
    owned = device(1)
    owned.reader = "alice/reader"
    for by, is_filled in (("bob", True), ("alice", False), ("", False)):
        tried = index()
        tried.remove(owned.id, by)
        assert tried.fill(owned, 0) is is_filled, by
        tried.put(owned, 0)
        tried.forget(owned)
        assert tried.fill(owned, 0), "it was registered again since"
