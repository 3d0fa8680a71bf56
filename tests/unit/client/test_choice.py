"""The shortest expected wait (BlueDove, section III-B)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.client.choice import Seen, choose
from utuple.cluster.load import Load

IDLE = Load(queued=0, arrival_per_s=10, service_per_s=1000)
BUSY = Load(queued=500, arrival_per_s=900, service_per_s=1000)


@pytest.mark.parametrize(
    ("seen", "in_flight", "now_s", "chosen"),
    [
        ({"a": Seen(BUSY, 0), "b": Seen(IDLE, 0)}, {}, 0.0, "b"),
        ({"a": Seen(BUSY, 0), "b": Seen(IDLE, 0)}, {"b": 600}, 0.0, "a"),
        ({"a": Seen(IDLE, 0)}, {}, 0.0, "b"),  # nothing is known of b
        ({"a": Seen(IDLE, 0), "b": Seen(Load(), 0)}, {}, 0.0, "b"),  # b has served nothing yet
        # a's queue drains while b's grows: after ten seconds it is the other way round
        (
            {"a": Seen(Load(500, 0, 100), 0), "b": Seen(Load(0, 200, 100), 0)},
            {},
            0.0,
            "b",
        ),
        (
            {"a": Seen(Load(500, 0, 100), 0), "b": Seen(Load(0, 200, 100), 0)},
            {},
            10.0,
            "a",
        ),
    ],
)
def test_the_member_with_the_shortest_expected_wait_is_chosen(
    seen: dict[str, Seen], in_flight: dict[str, int], now_s: float, chosen: str
) -> None:
    assert choose(["a", "b"], seen, in_flight, now_s, dice=0.0) == chosen


@given(st.floats(0, 1, exclude_max=True))
def test_ties_go_by_the_dice(dice: float) -> None:
    names = ["a", "b", "c"]
    assert choose(names, {}, {}, 0.0, dice) == names[int(dice * 3)]


loads = st.builds(Load, *[st.floats(0, 1e6)] * 3)


@given(
    st.dictionaries(st.sampled_from("abcd"), st.builds(Seen, loads, st.floats(0, 100))),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 10_000)),
    st.floats(0, 200),
    st.floats(0, 1, exclude_max=True),
)
def test_whatever_is_known_one_of_the_names_is_chosen(
    seen: dict[str, Seen], in_flight: dict[str, int], now_s: float, dice: float
) -> None:
    assert choose(["a", "b", "c"], seen, in_flight, now_s, dice) in {"a", "b", "c"}
