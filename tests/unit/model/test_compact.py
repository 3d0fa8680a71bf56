"""What is kept for long takes no more memory than it needs: orjson writes into 4 KiB, and keeps them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from utuple.model.condition import Range, encode_where
from utuple.model.packed import encode_metadata
from utuple.model.terms import Terms, encode_terms
from utuple.model.utuple import Template
from utuple.model.value import encode_data

_KEPT = 200


@pytest.mark.parametrize(
    "encode",
    [
        lambda number: encode_data({"kg": number}),
        lambda number: encode_where({"kg": Range(number, number + 1)}),
        lambda number: encode_metadata(Template(since_us=number)),
        lambda number: encode_terms(Terms(attempts=number + 1)),
    ],
    ids=["data", "where", "metadata", "terms"],
)
def test_what_was_encoded_takes_little_more_memory_than_its_text(
    encode: Callable[[int], bytes],
) -> None:
    encode(0)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [encode(number) for number in range(_KEPT)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / _KEPT < max(map(len, kept)) + 500
