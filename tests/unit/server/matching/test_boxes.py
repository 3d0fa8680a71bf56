"""Boxes of templates: exact where doubles are, generous and asked again where they are not."""

from __future__ import annotations

from math import inf

import pytest

from utuple.model.area import Box, Circle
from utuple.model.condition import ANY, DataCondition, Equal, OneOf, Prefix, Range
from utuple.model.utuple import Family, Template, UTuple
from utuple.server.matching.boxes import LOWEST, MAX_DIMENSIONS, NOWHERE, Dimensions

FAMILY = Family("truck", "load")
ANYTHING = Template()


def formal(metadata: Template = ANYTHING, /, **where: DataCondition) -> UTuple:
    return UTuple(b"f" * 16, FAMILY, metadata, None, where, 60, "r")


@pytest.mark.parametrize(
    ("wanted", "box", "is_open"),
    [
        (Range(1, 2.5), [1, 2.5], False),
        (Range(None, 3), [LOWEST, 3], False),
        (Range(3, None), [3, inf], False),
        (Range(2**53, None), [2**53, inf], True),
        (Equal(0), [0, 5e-324], False),
        (OneOf((1, 7)), [1, 7.000000000000001], True),
        (Equal("a"), [0, 1], False),
        (Equal(None), [0, 1], False),
        (Range("a", "b"), [], True),
        (Equal([1]), [], True),
        (ANY, [], True),
    ],
)
def test_a_condition_on_data_is_a_half_open_span_or_asked_again(
    wanted: DataCondition, box: list[float], is_open: bool
) -> None:
    assert Dimensions().box(formal(kg=wanted)) == (box, is_open)


def test_metadata_is_latitude_longitude_and_time() -> None:
    dimensions = Dimensions()
    _, is_open = dimensions.box(formal(Template(since_us=5, area=Box(1, 2, 3, 4))))
    assert [kind for kind, _ in dimensions.keys] == ["time", "lat", "lon"] and not is_open
    for asked_again in (
        Template(area=Circle(1, 2, 3)),
        Template(area=Box(1, 170, 3, -170)),
        Template(address=Prefix("t")),
    ):
        assert dimensions.box(formal(asked_again))[1]
    assert dimensions.box(formal()) == ([NOWHERE, inf] * 3, False)


def test_fields_beyond_the_last_dimension_are_asked_again() -> None:
    dimensions = Dimensions()
    many: dict[str, DataCondition] = {f"n{n}": Range(0, 1) for n in range(MAX_DIMENSIONS)}
    assert dimensions.box(formal(**many)) == ([0, 1] * MAX_DIMENSIONS, False)
    assert dimensions.box(formal(**many, late=Equal("a")))[1]
    assert len(dimensions) == MAX_DIMENSIONS


def test_a_text_is_forgotten_with_the_last_template_that_asks_for_it() -> None:
    dimensions = Dimensions()
    for text in ("a", "b", "a"):
        dimensions.box(formal(name=Equal(text)))
    dimensions.forget(formal(name=Equal("a")))
    assert dimensions.codes["name"].of == {"a": 0, "b": 1}
    dimensions.forget(formal(name=Equal("a")))
    assert dimensions.codes["name"].of == {"b": 1}
