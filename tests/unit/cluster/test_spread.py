"""How a section's EAs and EFs are spread: what is asked, where a dimension falls into equal parts, what each member would keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import event_actuals, event_formals
from utuple.cluster.dimension import spans_of
from utuple.cluster.layout import Axis, Layout
from utuple.cluster.spread import (
    Spread,
    decode_spread,
    encode_spread,
    quantile_axis,
    spread_of,
)
from utuple.errors import InvalidInput
from utuple.model.area import Box
from utuple.model.columns import columns_of
from utuple.model.condition import Equal, Range, prefix
from utuple.model.utuple import Exact, Family, Template, UTuple
from utuple.model.value import Value
from utuple.server.writing.sample import Sample

FAMILY = Family("truck", "load")
KG = "data.kg"


def ef(template: Template | None = None, **where: Range | Equal) -> UTuple:
    return UTuple(bytes(16), FAMILY, template or Template(), None, where, 60.0, "reader")


def ea(kg: Value = None, address: str = "a") -> UTuple:
    data = {} if kg is None else {"kg": kg}
    return UTuple(bytes(16), FAMILY, Exact(address, 1), data, None, 60.0)


def spread(*kgs: Value, efs: tuple[UTuple, ...] = (ef(kg=Range(0, 5)),)) -> Spread:
    return spread_of(len(efs), efs, [columns_of(map(ea, kgs))])


def owners(axis: Axis) -> list[list[str]]:
    return [[name for name in own if name != "h"] for own in axis.owners]


def test_what_efs_ask_is_told_with_how_many_do_the_most_asked_first() -> None:
    area = Template(area=Box(0, 0, 1, 1))
    seen = spread(efs=(ef(kg=Range(0, 5)), ef(area, kg=Equal(3)), ef(kg=Equal("heavy")), ef()))
    assert seen.asked == {KG: 0.5, "lat": 0.25, "lon": 0.25}


def test_each_of_the_others_gets_as_many_events() -> None:
    axis = quantile_axis(spread(*range(90)), KG, ("a", "b", "c"), "h")
    assert axis.cuts == (30, 60) and owners(axis) == [["a"], ["b"], ["c"]]
    assert all(own[-1] == "h" for own in axis.owners)


def test_one_value_that_most_events_have_is_not_cut_but_gets_a_second_owner() -> None:
    axis = quantile_axis(spread(1, 2, *[7] * 20, 8), KG, ("a", "b", "c"), "h")
    assert axis.cuts == (7,) and owners(axis) == [["a"], ["b", "c"]]
    only = quantile_axis(spread(7, 7, 7), KG, ("a", "b"), "h")
    assert only.cuts == () and owners(only) == [["a", "b"]]


def test_where_no_event_has_a_value_nobody_knows_where_to_cut() -> None:
    with pytest.raises(InvalidInput, match=r"no EA with data\.kg was seen lately"):
        quantile_axis(spread(None, "heavy"), KG, ("a",), "h")


def test_what_a_member_would_keep_and_take_is_told() -> None:
    layout = Layout((Axis(KG, (5,), (("a", "h"), ("b", "h"))),))
    efs = (ef(kg=Range(0, 5)), ef(kg=Range(4, 6)), ef(kg=Range(1, 2)), ef(Template(prefix("x"))))
    seen = spread(1, 2, 3, 9, efs=efs)
    assert seen.kept(layout, "h") == {"h": 1.0, "a": 1.0, "b": 0.5}
    assert seen.taken(layout.axes[0], "h") == {"a": 0.75, "b": 0.25}


def test_values_of_all_members_are_counted() -> None:
    seen = spread(1).with_values_of([spread(2), spread(3, 4)])
    assert [value[KG] for value in seen.values] == [1, 2, 3, 4]


@given(
    st.lists(event_formals(st.just(FAMILY)), max_size=4),
    st.lists(event_actuals(st.just(FAMILY)), max_size=4),
)
def test_a_spread_is_nearly_the_same_after_it_travelled(
    efs: list[UTuple], eas: list[UTuple]
) -> None:
    """Numbers beyond 2^53 are rounded."""
    seen = spread_of(len(efs), efs, [columns_of(eas)])
    came = decode_spread(encode_spread(seen))
    assert came.efs == seen.efs and came.asked == seen.asked
    assert [one.keys() for one in came.values] == [one.keys() for one in seen.values]
    assert encode_spread(came) == encode_spread(seen)
    for formal, asked in zip(efs, seen.formals, strict=True):
        assert all(spans == spans_of(name, formal) for name, spans in asked.items())


@pytest.mark.parametrize("said", [b"{", b"[]", b"{}", b'{"efs": 1, "formals": 5, "values": []}'])
def test_what_is_no_spread_is_refused(said: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_spread(said)


def test_a_sample_keeps_one_event_of_sixteen_and_not_the_largest() -> None:
    sample = Sample()
    for _ in range(10):
        sample.note(columns_of(ea(n) for n in range(10)))
    sample.note(columns_of(ea("x" * 5_000) for _ in range(64)))
    kept = list(sample.of(lambda family: family == FAMILY, 100))
    assert [len(one) for one in kept] == [1] * 6
    assert len(list(sample.of(lambda family: True, 2))) == 2
    assert list(sample.of(lambda family: False, 100)) == []


def test_of_a_large_batch_a_few_are_kept_from_all_over_it() -> None:
    sample = Sample()
    sample.note(columns_of(map(ea, range(10_000))))
    kept = spread_of(0, (ef(kg=Range(0, 5)),), list(sample.of(lambda _: True, 1_000)))
    weights = sorted(int(one[KG]) for one in kept.values)
    assert 10 < len(weights) <= 16 and weights[0] < 1_000 and weights[-1] > 9_000
