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
    ],
)
def test_a_threshold_that_cannot_be_is_refused_by_the_name_it_was_given(
    given: str, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        adjusted(LIVE, knobs_from([given]))
