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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("T_p=7", r"^T_p: 7\.0 is refused: must be above 0 and at most 1"),
        ("t-m=0", r"^t-m: 0\.0 is refused: must be above 0 and at most 1"),
        (
            "processing_stop=0.9",
            r"^processing_stop: 0\.9 is refused: must be below processing_start, which is 0\.7",
        ),
        ("settle_s=inf", r"^settle_s: inf is refused: must be at least 0 seconds, and finite"),
        ("smoothing_s=0", r"^smoothing_s: 0\.0 is refused: must be above 0 seconds, and finite"),
        ("worthwhile=7", r"^worthwhile: 7\.0 is refused: must be a share, from 0 to 1"),
        ("moves_share=nan", r"^moves_share: nan is refused: must be a share, from 0 to 1"),
        ("moves_at_once=2.5", r"^moves_at_once: 2\.5 is refused: must be a whole number"),
    ],
)
def test_a_knob_that_cannot_be_is_refused_by_the_name_it_was_given(given: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        adjusted(LIVE, knobs_from([given]))
