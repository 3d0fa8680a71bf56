"""Ids: UUIDv7 in the order of time; a named formal's id is a hash of what it is."""

from __future__ import annotations

import uuid
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.model.identity import (
    content_digest,
    is_named,
    is_named_by,
    named_id,
    time_of_id_us,
    uuid7,
)
from utuple.model.utuple import Exact, Template, UTuple

after_1970_us = st.integers(0, 253_402_300_799_999_999)
dice = st.integers(0, (1 << 74) - 1)


@given(after_1970_us, dice)
def test_uuid7_is_one_and_knows_its_millisecond(now_us: int, random: int) -> None:
    made = uuid.UUID(bytes=uuid7(now_us, random))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert time_of_id_us(made.bytes) == now_us // 1000 * 1000


@given(after_1970_us, after_1970_us, dice, dice)
def test_ids_of_later_milliseconds_sort_later(
    one_us: int, other_us: int, random: int, other_random: int
) -> None:
    assume(one_us // 1000 < other_us // 1000)
    assert uuid7(one_us, random) < uuid7(other_us, other_random)


@given(after_1970_us, dice, dice)
def test_other_dice_give_another_id(now_us: int, one: int, other: int) -> None:
    assert (uuid7(now_us, one) == uuid7(now_us, other)) == (one == other)


formals = st.one_of(some.event_formals(), some.command_formals())


@given(formals, some.ids, some.lifetimes_s)
def test_the_id_of_a_named_formal_is_of_what_it_is_and_nothing_else(
    formal: UTuple, id_: bytes, lifetime_s: float
) -> None:
    again = replace(formal, id=id_, lifetime_s=lifetime_s)
    assert named_id(again) == named_id(formal)
    made = uuid.UUID(bytes=named_id(formal))
    assert (made.version, made.variant) == (8, uuid.RFC_4122)


@given(some.event_formals(), st.none() | some.times_us)
def test_a_reader_that_says_another_since_means_the_reading_it_had_begun(
    formal: UTuple, since_us: int | None
) -> None:
    assert isinstance(formal.metadata, Template)
    until_us = formal.metadata.until_us
    assume(since_us is None or until_us is None or since_us < until_us)
    later = replace(formal, metadata=replace(formal.metadata, since_us=since_us))
    assert named_id(later) == named_id(formal)


@given(some.command_formals(), some.times_us)
def test_a_device_that_registers_again_later_is_the_same_device(formal: UTuple, at_us: int) -> None:
    assert isinstance(formal.metadata, Exact)
    later = replace(formal, metadata=replace(formal.metadata, time_us=at_us))
    assert named_id(later) == named_id(formal)


@given(formals, some.names)
def test_another_reader_has_another_id(formal: UTuple, reader: str) -> None:
    assume(reader != formal.reader)
    assert named_id(replace(formal, reader=reader)) != named_id(formal)


@given(formals, formals, some.names, some.names)
def test_a_named_id_is_its_owner_s_and_no_other_s(
    one: UTuple, other: UTuple, owner: str, another: str
) -> None:
    assume(owner != another)
    made = named_id(one, owner)
    assert uuid.UUID(bytes=made).version == 8 and is_named(made)
    assert is_named_by(owner, made) and not is_named_by(another, made)
    assert made not in (named_id(one, another), named_id(one))
    assert (made == named_id(other, owner)) == (named_id(one)[8:] == named_id(other)[8:])


@given(formals, formals)
def test_formals_of_other_content_have_other_ids(one: UTuple, other: UTuple) -> None:
    def content(formal: UTuple) -> object:
        """Everything but id, lifetime, since and a device's time; as text, since True equals 1."""
        place = formal.metadata
        bare = (
            replace(place, time_us=0) if isinstance(place, Exact) else replace(place, since_us=None)
        )
        where = sorted((formal.where or {}).items())
        return (formal.kind, formal.family, repr(bare), repr(where), formal.reader)

    assert (named_id(one) == named_id(other)) == (content(one) == content(other))


@given(some.utuples())
def test_the_digest_of_content_is_the_same_for_the_same_content(utuple: UTuple) -> None:
    assert content_digest(utuple) == content_digest(replace(utuple, lifetime_s=1.0))
