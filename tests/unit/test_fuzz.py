"""A short run of the fuzzer in every `make test`; the long ones are `python -m tests.fuzz --inputs 10000000`."""

from __future__ import annotations

import asyncio

import pytest

from tests.fuzz.__main__ import in_loop
from tests.fuzz.engine import fuzz
from tests.fuzz.targets import TARGETS, Target

INPUTS = 2_000
MOST_GROWTH_MB = 50


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_is_read_or_refused_as_promised(name: str) -> None:
    report = asyncio.run(in_loop(TARGETS[name], INPUTS, seed=1))
    assert not report.broken, report.broken[:3]
    assert report.growth_mb < MOST_GROWTH_MB and report.inputs == INPUTS
    assert report.lines > 10, "the tracer saw next to nothing"


def test_the_fuzzer_finds_what_only_a_few_inputs_reach() -> None:
    def read(data: bytes) -> None:
        if data.startswith(b"\xff") and len(data) > 3:
            raise KeyError("a bug, says the test")

    report = fuzz(Target(read, lambda: [b"abcdef"], (ValueError,)), 20_000, seed=1)
    assert report.broken and "KeyError" in report.broken[0]
