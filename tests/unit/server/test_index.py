"""The template index gives exactly the pairs `matches` accepts, whatever was added and removed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies as us
from utuple.model.columns import columns_of
from utuple.model.match import matches
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.server.index import TemplateIndex

FAMILY = Family("truck", "load")
FAR_US = us.NOW_US * 2


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[UTuple], list[UTuple]]:
    """EAs, and EFs around them."""
    one = st.just(FAMILY)
    events = draw(st.lists(us.event_actuals(one), min_size=1, max_size=12))
    near = st.sampled_from(events).flatmap(us.formal_near)
    formals = draw(
        st.lists(st.one_of(near, us.event_formals(one)), max_size=90, unique_by=lambda f: f.id)
    )
    return events, formals


@given(crowds(), st.data())
def test_index_and_matches_agree_under_insertion_and_removal(
    crowd: tuple[list[UTuple], list[UTuple]], data: st.DataObject
) -> None:
    events, formals = crowd
    index = TemplateIndex()
    living: dict[bytes, UTuple] = {}
    for formal in formals:
        index.add(formal, FAR_US)
        living[formal.id] = formal
        if living and data.draw(st.integers(0, 4)) == 0:
            gone = data.draw(st.sampled_from(sorted(living)))
            index.remove(gone)
            del living[gone]
    found = set(index.match(columns_of(events), us.NOW_US).pairs())
    wanted = {
        (row, id_)
        for row, event in enumerate(events)
        for id_, formal in living.items()
        if matches(event, formal)
    }
    assert found == wanted
    assert len(index) == len(living)


def test_expired_templates_match_nothing_until_renewed() -> None:
    event = UTuple(b"e" * 16, FAMILY, Exact("a", 1), {}, None, 60)
    formal = UTuple(b"f" * 16, FAMILY, Template(), None, {}, 60, "r")
    index = TemplateIndex()
    index.add(formal, expires_us=100)
    assert index.match(columns_of([event]), now_us=99)
    assert not index.match(columns_of([event]), now_us=100)
    index.renew(formal.id, 200)
    assert index.match(columns_of([event]), now_us=100)
