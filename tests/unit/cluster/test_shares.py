"""Section 3.2 of the paper: sCA servers share the devices out by a hash of subject, type and address."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.cluster.line import ServerInfo
from utuple.cluster.shares import AWAY, LEFT, SCA, Shares, hear_scas, shares_of
from utuple.model.utuple import Family

POWER = Family("aircon", "power")
ADDRESSES = [f"room-{number}" for number in range(3_000)]

names = st.sets(st.text("abcxyz-0123456789", min_size=1, max_size=8), min_size=1, max_size=6)
addresses = st.text(min_size=1, max_size=20)


@given(names, addresses)
def test_the_order_of_names_does_not_matter(some: set[str], address: str) -> None:
    owner = Shares(sorted(some)).owner(POWER, address)
    assert owner in some
    assert Shares(sorted(some, reverse=True)).owner(POWER, address) == owner


@given(names, st.text("abcxyz", min_size=9, max_size=9), addresses)
def test_one_that_joins_takes_only_what_it_wins(some: set[str], new: str, address: str) -> None:
    before, after = Shares(some), Shares([*some, new])
    assert after.owner(POWER, address) in (before.owner(POWER, address), new)
    assert all(after.gives_no_more(name, before) for name in some)
    assert not after.gives_no_more(new, before)


@given(names, addresses)
def test_one_that_leaves_changes_nothing_for_the_devices_of_others(
    some: set[str], address: str
) -> None:
    owner = Shares(some).owner(POWER, address)
    for name in some - {owner}:
        assert Shares(some - {name}).owner(POWER, address) == owner


@pytest.mark.parametrize("servers", [2, 3, 5])
def test_shares_are_about_equal(servers: int) -> None:
    shares = Shares(f"sca-{number}" for number in range(servers))
    counts = Counter(shares.owner(POWER, address) for address in ADDRESSES)
    assert len(counts) == servers
    assert all(abs(count * servers / len(ADDRESSES) - 1) < 0.15 for count in counts.values())


def test_subject_type_and_address_all_count() -> None:
    shares = Shares(["sca-1", "sca-2"])
    for families in (
        [Family(f"s{number}", "t") for number in range(40)],
        [Family("s", f"t{number}") for number in range(40)],
    ):
        assert {shares.owner(family, "a") for family in families} == {"sca-1", "sca-2"}


def test_the_newest_word_about_a_name_counts() -> None:
    known: dict[str, ServerInfo] = {}
    serving = ServerInfo("sca-1", "h:1", SCA, 10)
    assert hear_scas(known, [serving, ServerInfo("server-1", "h:2", "server", 11)]) == [serving]
    away = ServerInfo("sca-1", "h:1", AWAY, 11)
    assert hear_scas(known, [away]) == [away]
    assert hear_scas(known, [serving]) == []
    assert shares_of(known.values()).names == ()
    back = ServerInfo("sca-1", "h:1", SCA, 12)
    assert hear_scas(known, [back, away]) == [back]
    assert shares_of(known.values()).names == ("sca-1",)
    assert hear_scas(known, [ServerInfo("sca-1", "h:1", LEFT, 13)])
    assert shares_of(known.values()).names == ()
