"""A recording says what was said, when it was said, and its drawing scrolls as a terminal does."""

from __future__ import annotations

import json
import re
import sys
from xml.etree import ElementTree

import pytest

from tests.site.recording import ROWS, cast_of, drawing_of, lines_of, recorded


def test_a_cast_is_asciinema_s_and_gives_the_lines_back() -> None:
    lines = [(0.5, "one"), (2.25, "  two <3"), (3.0, "")]
    cast = cast_of(lines)
    head, first, *_ = map(json.loads, cast.splitlines())
    assert head["version"] == 2 and first == [0.0, "o", "$ utuple demo\r\n"]
    assert lines_of(cast) == lines


def test_each_line_is_drawn_as_text_when_it_came() -> None:
    drawing = drawing_of([(0.5, "one <b>"), (62.0, "two")])
    ElementTree.fromstring(drawing)
    shown = re.findall(r"animation-delay:([\d.]+)s\">(.*?)</text>", drawing)
    assert shown == [("0.00", "$ utuple demo"), ("1.50", "one &lt;b&gt;"), ("63.00", "two")]


def test_lines_that_do_not_fit_push_the_first_ones_out() -> None:
    short = drawing_of([(1.0, "x")] * (ROWS - 1))
    assert "translateY(-17px)" not in short
    assert "translateY(-17px)" in drawing_of([(1.0, "x")] * ROWS)


def test_a_run_that_fails_is_no_recording() -> None:
    with pytest.raises(AssertionError, match="ended with 3"):
        recorded([sys.executable, "-c", "print('x'); raise SystemExit(3)"])
