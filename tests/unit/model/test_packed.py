"""Packing changes nothing, and says the same in the same bytes."""

from __future__ import annotations

from dataclasses import replace
from json import dumps

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.errors import InvalidInput
from utuple.model.condition import address_condition
from utuple.model.packed import checked, packed
from utuple.model.utuple import Template, UTuple

formals_and_commands = st.one_of(some.event_formals(), some.command_actuals())


@given(formals_and_commands)
def test_what_is_packed_comes_back_unchanged(utuple: UTuple) -> None:
    half = packed(utuple)
    came = half.utuple
    assert came == utuple and came.kind is utuple.kind is half.kind
    assert repr(came.metadata) == repr(utuple.metadata)
    assert packed(came) == half


@given(formals_and_commands)
def test_what_we_packed_passes_the_check_unchanged(utuple: UTuple) -> None:
    template = utuple.metadata
    assert isinstance(template, Template)
    plainer = replace(template, address=address_condition(template.address))
    half = packed(replace(utuple, metadata=plainer))
    assert checked(half) == half


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
forms = st.one_of(
    json,
    st.fixed_dictionaries(
        {
            "address": json | st.tuples(st.sampled_from(["equal", "range", "prefix"]), json),
            "since_us": json,
            "until_us": json,
            "area": json | st.tuples(st.sampled_from(["box", "circle"]), json, json, json),
        }
    ),
)


@given(formals_and_commands, forms)
def test_whatever_somebody_sends_is_accepted_or_refused_with_its_field(
    utuple: UTuple, form: object
) -> None:
    half = packed(utuple)._replace(metadata=dumps(form).encode())
    try:
        accepted = checked(half)
    except InvalidInput:
        return
    assert checked(accepted) == accepted == packed(accepted.utuple)
