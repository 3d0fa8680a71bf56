"""Terms of delivery: what they may say, their one encoding, and the hash that decides who joins."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.errors import InvalidInput
from utuple.model.terms import (
    KEEP,
    DropPolicy,
    Terms,
    decode_terms,
    encode_terms,
    expire,
    joins,
    keep,
    latest_per_address,
    newest,
    oldest,
    place_of,
    respond_within,
)


@given(some.terms)
def test_terms_come_back_from_their_encoding(terms: Terms | None) -> None:
    assert decode_terms(encode_terms(terms)) == (terms or Terms())


def test_the_default_is_no_word() -> None:
    assert encode_terms(None) == encode_terms(Terms()) == b"" and keep() is KEEP


def test_a_policy_is_said_as_it_is_written() -> None:
    said = [newest(5), oldest(2), expire(0.5), respond_within(7, share=0.95), latest_per_address()]
    assert [str(one) for one in said] == [
        "newest(5)",
        "oldest(2)",
        "expire(0.5)",
        "respond_within(7, share=0.95)",
        "latest_per_address()",
    ]


@pytest.mark.parametrize("bad", [0, -1, nan, inf, True, "7", None, 1.5])
def test_a_count_that_is_none_is_refused_by_name(bad: Any) -> None:
    for make in (newest, oldest):
        with pytest.raises(InvalidInput) as refused:
            make(bad)
        assert refused.value.field == make.__name__
    if bad is not None:
        with pytest.raises(InvalidInput, match="attempts"):
            Terms(attempts=bad)


@pytest.mark.parametrize("bad", [0, -1, nan, inf, -inf, True, "7", 1e12])
def test_seconds_that_are_none_are_refused_by_name(bad: Any) -> None:
    for make in (expire, respond_within):
        with pytest.raises(InvalidInput) as refused:
            make(bad)
        assert refused.value.field == make.__name__
    with pytest.raises(InvalidInput, match="ack_within_s"):
        Terms(ack_within_s=bad)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, nan, "0.5", True])
def test_a_share_lies_between_0_and_1(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="share"):
        respond_within(7, share=bad)


def test_what_is_no_policy_is_refused() -> None:
    for bad in ("newest", 5, None):
        with pytest.raises(InvalidInput, match="absent"):
            Terms(absent=bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="absent"):
        DropPolicy("latest")
    with pytest.raises(InvalidInput, match="share"):
        DropPolicy("newest", 5, 0.5)
    with pytest.raises(InvalidInput, match="sticky"):
        Terms(sticky=True)
    with pytest.raises(InvalidInput, match="share"):
        Terms(share=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad", [b"{", b"[]", b'{"absent":5}', b'{"more":1}', b'{"absent":[1,2,3,4]}']
)
def test_what_is_no_terms_on_the_wire_is_refused(bad: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_terms(bad)


@given(some.ids, some.ids, st.floats(0, 1), st.floats(0, 1))
def test_who_joins_at_one_share_joins_at_every_larger_one(
    formal: bytes, event: bytes, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert joins(formal, event, high) or not joins(formal, event, low)
    assert joins(formal, event, 1.0) and not joins(formal, event, 0.0)


def test_as_many_join_as_the_share_says() -> None:
    events = [number.to_bytes(16, "big") for number in range(10_000)]
    joined = sum(joins(b"f" * 16, event, 0.35) for event in events)
    assert 3_300 < joined < 3_700  # ten standard deviations of a fair coin


def test_the_place_of_a_pair_is_for_ever() -> None:
    """Servers of every version must agree: a change of the hash would drop other events after an upgrade."""
    assert place_of(bytes(16), bytes(range(16))) == 0.40974828603515884


def test_terms_are_shown_as_they_are_said() -> None:
    assert str(Terms()) == "the default"
    said = Terms(
        respond_within(7, share=0.95), ack_within_s=30, attempts=3, share=True, sticky=True
    )
    assert str(said) == (
        "absent=respond_within(7, share=0.95), ack_within_s=30, attempts=3, share=True, sticky=True"
    )
