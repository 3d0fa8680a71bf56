"""The document of grants: its one encoding, its numbers, and what is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given

from tests.strategies import grant_documents
from utuple.errors import InvalidInput
from utuple.model.area import Box
from utuple.model.condition import Prefix
from utuple.security.grants import (
    Action,
    FamilyPattern,
    Grant,
    Grants,
    decode,
    encode,
    family_pattern,
)
from utuple.security.identity import Role

TRUCKS = Grant(
    "fleet",
    Role.APPLICATION,
    {Action.WATCH: (FamilyPattern("truck", "*"),)},
    Prefix("truck-"),
    Box(35.0, 139.0, 36.0, 140.0),
    3600.0,
)
ONE = Grants("here").granted(TRUCKS)


@given(grant_documents())
def test_what_is_encoded_is_decoded_the_same(grants: Grants) -> None:
    assert decode(encode(grants)) == grants
    assert encode(decode(encode(grants))) == encode(grants)


def test_the_order_in_which_grants_were_given_does_not_change_the_bytes() -> None:
    other = Grant("other", Role.DEVICE)
    one, two = (
        Grants("c", 2, {"fleet": TRUCKS, "other": other}),
        Grants("c", 2, {"other": other, "fleet": TRUCKS}),
    )
    assert encode(one) == encode(two)


def test_each_change_has_the_next_number() -> None:
    assert ONE.number == 1
    assert ONE.revoked("fleet", 10).number == 2


def test_who_is_revoked_has_no_grant_and_stays_in_the_document() -> None:
    revoked = ONE.revoked("fleet", 10)
    assert "fleet" not in revoked.grants
    assert revoked.void_before_us == {"fleet": 10}
    assert revoked.granted(TRUCKS).void_before_us == {"fleet": 10}


@pytest.mark.parametrize("text", ["truck", "truck/", "/load", "a/b/c", ""])
def test_a_family_is_a_subject_and_a_type(text: str) -> None:
    with pytest.raises(InvalidInput, match="SUBJECT/TYPE"):
        family_pattern(text)


def test_programs_are_not_granted_anything() -> None:
    with pytest.raises(InvalidInput, match="role"):
        Grant("server-1", Role.PROGRAM)


GOOD: dict[str, Any] = orjson.loads(encode(ONE))
WRONG_GRANTS: list[dict[str, Any]] = [
    {"role": "king"},
    {"role": "program"},
    {"name": "../fleet"},
    {"families": {"delete": []}},
    {"families": {"watch": [["truck"]]}},
    {"families": {"watch": [["", "load"]]}},
    {"scope": "truck-"},
    {"scope": ["address", ""]},
    {"area": ["box", 1]},
    {"area": ["box", 91, 0, 92, 1]},
    {"max_lifetime_s": -1},
    {"max_lifetime_s": "1d"},
    {"more": 1},
]
WRONG: list[Any] = [
    None,
    [],
    {**GOOD, "more": 1},
    {name: value for name, value in GOOD.items() if name != "number"},
    {**GOOD, "number": "1"},
    {**GOOD, "number": True},
    {**GOOD, "number": -1},
    {**GOOD, "cluster": "C"},
    {**GOOD, "void_before_us": {"a b": 1}},
    {**GOOD, "void_before_us": {"a": "1"}},
    {**GOOD, "grants": GOOD["grants"] * 2},
    *({**GOOD, "grants": [{**GOOD["grants"][0], **wrong}]} for wrong in WRONG_GRANTS),
]


@pytest.mark.parametrize("form", WRONG, ids=repr)
def test_a_document_that_is_not_right_is_refused_as_a_whole(form: object) -> None:
    with pytest.raises(InvalidInput):
        decode(orjson.dumps(form))


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be JSON"):
        decode(b"{")
