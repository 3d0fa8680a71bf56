"""Which member an event goes to (BlueDove, sections III-B and IV)."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.client.config import Config
from utuple.client.connecting import connect
from utuple.client.routing.route import COSTS, UNKNOWN, Standing, averaged, choose
from utuple.cluster.load import Load
from utuple.errors import InvalidInput

IDLE = Load(queued=0, arrival_per_s=10, service_per_s=1000)
BUSY = Load(queued=500, arrival_per_s=900, service_per_s=1000)
DRAINING = Load(queued=500, arrival_per_s=0, service_per_s=100)
GROWING = Load(queued=0, arrival_per_s=200, service_per_s=100)


@pytest.mark.parametrize(
    ("a", "b", "now_s", "chosen"),
    [
        (Standing(BUSY), Standing(IDLE), 0.0, "b"),
        (Standing(BUSY), Standing(IDLE, in_flight=600), 0.0, "a"),
        (Standing(IDLE), UNKNOWN, 0.0, "b"),
        (Standing(IDLE), Standing(Load()), 0.0, "b"),  # b has served nothing yet
        # a's queue drains while b's grows: after ten seconds it is the other way round
        (Standing(DRAINING), Standing(GROWING), 0.0, "b"),
        (Standing(DRAINING), Standing(GROWING), 10.0, "a"),
        # an idle member is sooner at it than a fast one with something to do
        (Standing(Load(0, 0, 10)), Standing(Load(100, 0, 1000)), 0.0, "a"),
        (Standing(Load(0, 0, 10)), Standing(Load(98, 0, 1000)), 0.0, "b"),
        # what was on its way when b answered is in the queue it told of, and counts once
        (
            Standing(Load(150, 0, 100)),
            Standing(Load(100, 0, 100), counted=100, in_flight=100),
            0.0,
            "b",
        ),
        (
            Standing(Load(150, 0, 100)),
            Standing(Load(100, 0, 100), counted=0, in_flight=100),
            0.0,
            "a",
        ),
        # b said it was idle and has not answered since: nobody knows how long it will take
        (Standing(BUSY), Standing(IDLE, in_flight=1, owed_since_s=0.0), 0.01, "b"),
        (Standing(BUSY), Standing(IDLE, in_flight=1, owed_since_s=0.0), 2.0, "a"),
        # an unknown member is tried with one, and then counts as an ordinary one until it answers
        (Standing(IDLE), Standing(in_flight=1), 0.0, "a"),
        (Standing(BUSY), Standing(in_flight=1), 0.0, "b"),
        (Standing(BUSY), Standing(in_flight=1, owed_since_s=0.0), 3.0, "a"),
    ],
)
def test_the_member_with_the_shortest_expected_wait_is_chosen(
    a: Standing, b: Standing, now_s: float, chosen: str
) -> None:
    known = {"a": a, "b": b}
    assert choose(["a", "b"], known, now_s=now_s, dice=0.0) == chosen


@pytest.mark.parametrize(
    ("a", "b", "chosen"),
    [
        (Standing(replace(IDLE, templates=7)), Standing(replace(BUSY, templates=6)), "b"),
        (Standing(replace(IDLE, templates=0)), UNKNOWN, "b"),
        (Standing(replace(IDLE, templates=9)), Standing(in_flight=1), "a"),
    ],
)
def test_least_subscriptions_takes_the_member_with_the_fewest_efs(
    a: Standing, b: Standing, chosen: str
) -> None:
    known, policy = {"a": a, "b": b}, "least-subscriptions"
    assert choose(["a", "b"], known, now_s=0.0, dice=0.0, policy=policy) == chosen


@pytest.mark.parametrize(
    ("a", "b", "now_s", "chosen"),
    [
        (Standing(IDLE, answer_s=0.2), Standing(BUSY, answer_s=0.1), 0.0, "b"),
        (Standing(IDLE, answer_s=0.2), UNKNOWN, 0.0, "b"),
        # b was slow, but that is long ago
        (Standing(IDLE, at_s=9.0, answer_s=0.2), Standing(IDLE, answer_s=5.0), 1.0, "a"),
        (Standing(IDLE, at_s=9.0, answer_s=0.2), Standing(IDLE, answer_s=5.0), 9.0, "b"),
        (Standing(IDLE, answer_s=0.2), Standing(in_flight=1, owed_since_s=0.0), 1.0, "a"),
    ],
)
def test_response_time_takes_the_member_that_answers_fastest(
    a: Standing, b: Standing, now_s: float, chosen: str
) -> None:
    known, policy = {"a": a, "b": b}, "response-time"
    assert choose(["a", "b"], known, now_s=now_s, dice=0.0, policy=policy) == chosen


@given(st.lists(st.floats(0, 100), min_size=1))
def test_an_averaged_answer_time_lies_between_the_shortest_and_the_longest(
    answers_s: list[float],
) -> None:
    average: float | None = None
    for answer_s in answers_s:
        average = averaged(average, answer_s)
    assert average is not None
    assert min(answers_s) * 0.999 <= average <= max(answers_s) * 1.001


def test_an_averaged_answer_time_follows_a_change_within_a_few_answers() -> None:
    average = 1.0
    for _ in range(12):
        average = averaged(average, 0.0)
    assert average < 0.1


@given(st.floats(0, 1, exclude_max=True), st.sampled_from(list(COSTS)))
def test_ties_go_by_the_dice(dice: float, policy: str) -> None:
    names = ["a", "b", "c"]
    assert choose(names, {}, now_s=0.0, dice=dice, policy=policy) == names[int(dice * 3)]


loads = st.builds(Load, *[st.floats(0, 1e6)] * 3, templates=st.integers(0, 1000))
standings = st.builds(
    Standing,
    st.none() | loads,
    st.floats(0, 100),
    st.integers(0, 10_000),
    st.floats(0, 100),
    st.integers(0, 10_000),
    st.none() | st.floats(0, 100),
)


@given(
    st.dictionaries(st.sampled_from("abcd"), standings),
    st.floats(0, 200),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(list(COSTS)),
)
def test_whatever_is_known_one_of_the_names_is_chosen(
    known: dict[str, Standing], now_s: float, dice: float, policy: str
) -> None:
    names = ["a", "b", "c"]
    assert choose(names, known, now_s=now_s, dice=dice, policy=policy) in names


# --- a small simulation -----------------------------------------------------------------------------


@dataclass
class Run:
    """Batches come at a steady rate to servers that work at their own speeds, one row after another."""

    speeds: dict[str, float]
    policy: str
    rate_per_s: float
    rows: int = 10
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    sent: Counter[str] = field(default_factory=Counter)
    waits_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        free_s = dict.fromkeys(self.speeds, 0.0)
        in_flight: Counter[str] = Counter()
        known: dict[str, Standing] = {}
        answers: list[tuple[float, str, float]] = []
        names = list(self.speeds)
        for number in range(2_000):
            now_s = number / self.rate_per_s
            while answers and answers[0][0] <= now_s:
                at_s, name, answer_s = heapq.heappop(answers)
                in_flight[name] -= self.rows
                queued = max(0.0, free_s[name] - at_s) * self.speeds[name]
                load = Load(queued, 0.0, self.speeds[name])
                before = known[name].answer_s if name in known else None
                average_s = averaged(before, answer_s)
                known[name] = Standing(load, at_s, counted=in_flight[name], answer_s=average_s)
            seen = {n: replace(known.get(n, UNKNOWN), in_flight=in_flight[n]) for n in names}
            name = choose(
                names,
                seen,
                now_s=now_s,
                dice=self.dice.random(),
                policy=self.policy,
            )
            free_s[name] = max(now_s, free_s[name]) + self.rows / self.speeds[name]
            heapq.heappush(answers, (free_s[name], name, free_s[name] - now_s))
            in_flight[name] += self.rows
            self.sent[name] += self.rows
            self.waits_s.append(free_s[name] - now_s)

    @property
    def mean_wait_s(self) -> float:
        return sum(self.waits_s) / len(self.waits_s)


ONE_SLOW = {"a": 1_000.0, "b": 1_000.0, "c": 1_000.0, "slow": 100.0}


def test_the_adaptive_policy_sends_a_slow_member_less_and_waits_less_than_the_random_one() -> None:
    adaptive, anyone = (Run(ONE_SLOW, policy, 200.0) for policy in ("adaptive", "random"))
    assert adaptive.sent["slow"] < anyone.sent["slow"] / 4
    assert adaptive.mean_wait_s < anyone.mean_wait_s / 10


def test_under_full_load_the_adaptive_policy_sends_in_proportion_to_speed() -> None:
    speeds = {"a": 100.0, "b": 200.0, "c": 400.0, "d": 800.0}
    run = Run(speeds, "adaptive", rate_per_s=150.0)
    for name, speed in speeds.items():
        share = run.sent[name] / sum(run.sent.values())
        assert share == pytest.approx(speed / sum(speeds.values()), rel=0.1)


def test_the_adaptive_policy_beats_the_response_time_policy_under_load() -> None:
    """Section IV, figure 7: without extrapolation the work goes where the last answers were fast."""
    adaptive, times = (Run(ONE_SLOW, policy, 250.0) for policy in ("adaptive", "response-time"))
    assert adaptive.mean_wait_s < times.mean_wait_s


# --- how it is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["best", "", "Adaptive", None, ["random"]])
def test_an_unknown_policy_is_refused_by_name(choice: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        connect("127.0.0.1:7400", choice=choice)  # type: ignore[arg-type]
    assert (caught.value.field, caught.value.value) == ("choice", choice)
    for policy in COSTS:
        assert policy in caught.value.rule


def test_adaptive_is_the_policy_in_use() -> None:
    assert Config().choice == "adaptive"
