"""Packing changes nothing, and says the same in the same bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.model.packed import packed
from utuple.model.utuple import UTuple

formals_and_commands = st.one_of(some.event_formals(), some.command_actuals())


@given(formals_and_commands)
def test_what_is_packed_comes_back_unchanged(utuple: UTuple) -> None:
    half = packed(utuple)
    came = half.utuple
    assert came == utuple and came.kind is utuple.kind is half.kind
    assert repr(came.metadata) == repr(utuple.metadata)
    assert packed(came) == half
