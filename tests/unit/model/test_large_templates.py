"""A template that asks too much is refused by field, value and rule, wherever it comes in, before work is done for it;
one that was stored before there was a limit is read on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from sca_server.index import Templates
from utuple.client.arguments import Place, commanding, formal, template
from utuple.errors import InvalidInput
from utuple.model.condition import ANY, Where, data_template, decode_where, encode_where, one_of
from utuple.model.limits import MAX_ALTERNATIVES, MAX_CONDITIONS, MAX_PARTS, MAX_TEMPLATE_BYTES
from utuple.model.packed import Packed, checked, encode_metadata
from utuple.model.utuple import Exact, Family, Kind, Template
from utuple.model.value import encode_data, normal_data

ID = bytes(15) + b"\x01"
HALF = one_of(*range(MAX_ALTERNATIVES // 2 + 1))
TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "one condition too many": ({f"f{n}": ANY for n in range(MAX_CONDITIONS + 1)}, "conditions"),
    "too many values together": ({"a": HALF, "b": HALF}, "values"),
    "one byte too many": (
        {"a": "x" * (MAX_TEMPLATE_BYTES - len('{"a":["equal",""]}') + 1)},
        "bytes",
    ),
}


def encoded(where: Where) -> bytes:
    return encode_where(formal_where(where))


def formal_where(where: dict[str, Any] | Where) -> Where:
    return data_template(where)


def by_sdk(where: dict[str, Any]) -> object:
    return formal(ID, "truck", "load", Template(), where, "reader", 60)


def by_sdk_of_a_device(where: dict[str, Any]) -> object:
    return formal(ID, "truck", "load", Exact("a", 1), where, "reader", 60)


def by_batch(where: dict[str, Any]) -> object:
    metadata = encode_metadata(Template())
    family = Family("truck", "load")
    return checked(Packed(ID, family, Kind.EF, metadata, encoded(where), 60.0, "reader"))


def by_sca_server(where: dict[str, Any]) -> None:
    Templates(10).check(encoded(where))


@pytest.mark.parametrize("enter", [by_sdk, by_sdk_of_a_device, by_batch, by_sca_server])
@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_template_that_asks_too_much_is_refused_by_name(
    name: str, enter: Callable[[dict[str, Any]], object]
) -> None:
    where, unit = TOO_MUCH[name]
    with pytest.raises(InvalidInput) as refused:
        enter(where)
    assert refused.value.field == "where"
    assert str(refused.value.value).endswith(unit)
    assert "at most" in refused.value.rule


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_was_stored_before_there_was_a_limit_is_read_on(name: str) -> None:
    where = formal_where(TOO_MUCH[name][0])
    assert decode_where(encode_where(where)).keys() == where.keys()
    assert Templates(10).of(encode_where(where)).where is not None


def test_addresses_count_with_the_values_of_other_fields() -> None:
    place = template(Place(address=one_of(*map(str, range(MAX_ALTERNATIVES // 2 + 1)))))
    with pytest.raises(InvalidInput, match="10000 values"):
        formal(ID, "truck", "load", place, {"a": HALF}, "reader", 60)


def test_a_command_to_very_long_addresses_is_refused_by_its_bytes() -> None:
    place = Place(address=one_of(*[f"{n:01000}" for n in range(600)]))
    with pytest.raises(InvalidInput, match=f"at most {MAX_TEMPLATE_BYTES} bytes"):
        commanding(ID, "truck", "load", place, {}, 0)


def test_as_many_lists_as_there_may_be_pass_and_one_more_does_not() -> None:
    most: list[Any] = [[]] * (MAX_PARTS - 2)
    assert normal_data(encode_data({"v": most}))
    with pytest.raises(InvalidInput, match=f"{MAX_PARTS + 1} lists and mappings"):
        encode_data({"v": [*most, []]})
    with pytest.raises(InvalidInput, match=f"{MAX_PARTS + 1} lists and mappings"):
        normal_data(orjson.dumps({"v": [*most, []]}))


def test_brackets_in_texts_are_no_lists() -> None:
    data = {"v": '[\\"' * 2 * MAX_PARTS, "w": [[1]]}
    assert normal_data(encode_data(data)) == encode_data(data)
