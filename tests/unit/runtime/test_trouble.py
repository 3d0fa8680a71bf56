"""What goes wrong again and again, in a log."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from utuple.runtime.clock import CLOCK
from utuple.runtime.logs import Log
from utuple.runtime.trouble import Trouble


@dataclass
class Now:
    s: float = 100.0

    def monotonic_s(self) -> float:
        return self.s

    def now_us(self) -> int:
        return round(self.s * 1e6)


def test_trouble_is_told_once_then_every_minute_and_that_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = Now()
    token = CLOCK.set(now)
    trouble = Trouble(Log("utuple.trouble"), "lookup failed", "lookups are answered again")
    with caplog.at_level(logging.WARNING, "utuple.trouble"):
        trouble.over()
        for tenth in range(1_300):
            now.s = 100.0 + tenth / 10
            trouble.again(reason="nobody")
        trouble.over()
        trouble.over()
        trouble.again(reason="somebody")
    CLOCK.reset(token)
    assert [record.getMessage() for record in caplog.records] == [
        *["lookup failed reason=nobody"] * 3,
        "lookups are answered again after_s=129.9",
        "lookup failed reason=somebody",
    ]
