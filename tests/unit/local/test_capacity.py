"""What stores may grow to, as an operator says it."""

from __future__ import annotations

import pytest

from utuple.errors import InvalidInput
from utuple.local.capacity import EVERY, capacities_of, capacity_of, check_stored, size_bytes

SERVERS = ("server-1", "server-2")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("200MB", 200_000_000),
        ("1.5 GiB", 1_610_612_736),
        ("140gb", 140_000_000_000),
        ("5000000", 5_000_000),
    ],
)
def test_a_size_is_a_number_with_its_unit(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "0", "0MB", "-5MB", "MB", "5 apples", "nan", "1kB", "1e9", "2000000TB", "9" * 400]
)
def test_what_is_no_size_or_less_than_an_empty_store_takes_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--capacity"):
        size_bytes(text)


def test_one_server_may_have_a_capacity_of_its_own() -> None:
    said = capacities_of(["200MB", "server-2=300MB"], SERVERS)
    assert said == {EVERY: 200_000_000, "server-2": 300_000_000}
    assert [capacity_of(name, said) for name in (*SERVERS, "server-9")] == [
        200_000_000,
        300_000_000,
        200_000_000,
    ]
    assert capacity_of("server-1", {}) is None


@pytest.mark.parametrize("given", [["server-9=200MB"], ["200MB", "300MB"], ["server-1="]])
def test_an_unknown_server_and_a_size_said_twice_are_refused(given: list[str]) -> None:
    with pytest.raises(InvalidInput, match=r"--capacity"):
        capacities_of(given, SERVERS)


def test_a_capacity_below_what_is_stored_is_refused_with_both_figures() -> None:
    said = {EVERY: 50_000_000, "server-2": 5_000_000}
    check_stored(said, {"server-1": 50_000_000, "server-2": 4_000_000})
    with pytest.raises(InvalidInput, match=r"server-2=5MB.*less than the 6MB that server-2 holds"):
        check_stored(said, {"server-1": 0, "server-2": 6_000_000})
