"""Every option of every program says what it is for."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from utuple.runtime.options import help_of, reasons_of

LIMIT_S = 60.0


@pytest.mark.parametrize(
    "program", ["assignment_manager", "utuple.server", "sca_server", "load_monitor"]
)
def test_every_option_has_help(program: str) -> None:
    command = [sys.executable, "-m", program, "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    listed = shown.stdout.partition("options:")[2]
    options = re.split(r"\n  (?=-)", listed)[1:]
    assert len(options) > 8
    for option in options:
        words = option.split()
        assert len([word for word in words if not word.startswith("-")]) >= 4, option


@dataclass(frozen=True)
class Example:
    name: str
    first_s: float = 1.0
    last_s: float = 2.0
    """Between attempts: 50 % of them
    are enough."""
    bare: int = 3


def test_a_reason_is_what_is_written_below_a_field_or_below_the_last_that_share_it() -> None:
    shared = "Between attempts: 50 % of them are enough."
    assert reasons_of(Example) == {"name": shared, "first_s": shared, "last_s": shared, "bare": ""}
    assert help_of(shared, 12_000) == "Between attempts: 50 %% of them are enough. Default 12,000."
