"""An error about a field can be printed and logged, whatever the field is called."""

from __future__ import annotations

import pytest

from utuple.errors import InvalidInput
from utuple.model.value import encode_data


@pytest.mark.parametrize("key", ["\ud800", "a\0b", "line\nbreak", "\u202e"], ids=ascii)
def test_a_field_s_name_is_printable(key: str) -> None:
    error = InvalidInput(f"data.{key}", 1, "must not be")
    assert str(error).isprintable()
    assert error.field == f"data.{ascii(key)[1:-1]}"
    assert InvalidInput(error.field, 1, "must not be").field == error.field


def test_letters_of_any_script_stay_as_they_are() -> None:
    assert InvalidInput("data.温度", 1, "must not be").field == "data.温度"


def test_a_lone_surrogate_in_data_is_refused_in_words_that_can_be_written() -> None:
    with pytest.raises(InvalidInput) as refused:
        encode_data({"\ud800": 1})
    assert str(refused.value).encode()
