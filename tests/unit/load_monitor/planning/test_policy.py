"""The policy's knobs as a person gives them."""

from __future__ import annotations

import pytest

from load_monitor.planning.policy import HALF, KEY, LIVE, adjusted, knobs_from
from utuple.errors import InvalidInput


def test_section_3_6_where_a_section_is_split_is_a_word() -> None:
    assert adjusted(LIVE, knobs_from(["split_at=half"])).split_at == HALF
    assert adjusted(LIVE, knobs_from(["split-at = KEY"])).split_at == KEY
    with pytest.raises(InvalidInput, match=r"split_at.*must be half or key"):
        adjusted(LIVE, knobs_from(["split_at=third"]))
