"""The checker skips what cannot matter, and misses nothing by it."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.chaos import checker
from benchmarks.chaos.checker import History, Outcome, check
from tests.unit.benchmarks.chaos.plain_checker import plain_check
from utuple.cluster.line import Line, Member
from utuple.model.condition import DataCondition, at_least
from utuple.model.match import matches
from utuple.model.section import Section
from utuple.model.utuple import Exact, Family, Template, UTuple

FAMILIES = [Family(f"truck-{number}", "load") for number in range(2)]
S = 1_000_000
END_S = 100

outcomes = st.sampled_from([Outcome.OK, Outcome.OK, Outcome.UNKNOWN, Outcome.NOT])
lifetimes_s = st.sampled_from([0.0, 6.0, 31.0, 1000.0])
instants_us = st.sampled_from([0, 10 * S, 64 * S, 70 * S, 95 * S])
waits_us = st.sampled_from([0, 0, 1, 5 * S])
"""Few, so that they are often just at a limit."""


def id_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History()
    labels = _labels(draw, history)
    numbers = range(draw(st.integers(0, 12)))
    for number in numbers:
        _sent(draw, history, number, labels)
    for name in draw(st.lists(st.sampled_from([*labels, "never opened"]), max_size=20)):
        history.delivered(name, id_of(draw(st.sampled_from([*numbers, 77]))), 0)
    for name in draw(st.lists(st.sampled_from(labels), max_size=2)) if labels else ():
        if draw(st.booleans()):
            history.watch_closed(name, draw(instants_us))
        else:
            formal, at_us = history.labels[name].formal, draw(instants_us)
            history._open(name, formal, at_us, at_us)
    for _ in range(draw(st.integers(0, 3))):
        ids = draw(st.lists(st.sampled_from([*map(id_of, [*numbers, 77])]), max_size=15))
        family, complete = draw(st.sampled_from(FAMILIES)), draw(st.booleans())
        history.read_back(family, ids, draw(instants_us), complete=complete)
    for at in range(draw(st.integers(0, 6))):
        history.line_seen(draw(st.sampled_from("ab")), draw(lines()), at)
    return history


def _labels(draw: st.DrawFn, history: History) -> list[str]:
    names = [f"label-{number}" for number in range(draw(st.integers(0, 4)))]
    for number, name in enumerate(names):
        family, asked_us = draw(st.sampled_from(FAMILIES)), draw(instants_us)
        opened_us = asked_us + draw(waits_us)
        if draw(st.booleans()):
            where: dict[str, DataCondition] = {"kg": at_least(draw(st.integers(0, 3)))}
            ef = UTuple(id_of(1000 + number), family, Template(), None, where, 60.0, name)
            history.watch_opened(name, ef, asked_us, opened_us)
        else:
            cf = UTuple(id_of(1000 + number), family, Exact("room", 1), None, {}, 60.0, name)
            history.served(name, cf, asked_us, opened_us)
    return names


def _sent(draw: st.DrawFn, history: History, number: int, labels: list[str]) -> None:
    family, lifetime_s = draw(st.sampled_from(FAMILIES)), draw(lifetimes_s)
    outcome = draw(outcomes)
    began_us = draw(instants_us)
    ended_us = began_us + draw(waits_us)
    data = {"kg": draw(st.integers(0, 3))}
    if draw(st.booleans()):
        ea = UTuple(id_of(number), family, Exact("room", 1), data, None, lifetime_s)
        history.emitted(ea, began_us, ended_us, outcome)
    else:
        ca = UTuple(id_of(number), family, Template(), data, None, lifetime_s)
        handed = draw(st.lists(st.sampled_from(labels), max_size=2)) if labels else ()
        history.commanded(ca, began_us, ended_us, outcome, handed)


@st.composite
def lines(draw: st.DrawFn) -> Line:
    start = draw(st.integers(0, 3))
    section = Section(start, start + draw(st.integers(1, 3)))
    names = draw(st.lists(st.sampled_from("ab"), min_size=1, unique=True))
    return Line(section, draw(st.integers(1, 3)), tuple(map(Member, names)))


@given(histories(), st.sampled_from([0, 20, 60]), st.sampled_from([0.0, 5.0, 30.0]))
def test_the_verdict_is_that_of_looking_at_every_pair(
    history: History, calm_s: int, settle_s: float
) -> None:
    assert_judged_alike(history, calm_s, settle_s)


def test_one_pair_is_judged_alike_whenever_its_halves_began_and_ended() -> None:
    times_s = (0, 64, 70, 95)
    for began_s, opened_s, lifetime_s in product(times_s, times_s, (0.0, 6.0, 31.0, 1000.0)):
        for closed_s, calm_s, settle_s in product((None, 70, 95), (0, 64, 69), (0.0, 5.0, 30.0)):
            history = History()
            ea = UTuple(id_of(1), FAMILIES[0], Exact("a", 1), {}, None, lifetime_s)
            ef = UTuple(id_of(2), FAMILIES[0], Template(), None, {}, 60.0, "reader")
            history.emitted(ea, began_s * S, began_s * S, Outcome.OK)
            history.watch_opened("label", ef, opened_s * S, opened_s * S)
            if closed_s is not None:
                history.watch_closed("label", closed_s * S)
            assert_judged_alike(history, calm_s, settle_s)


def assert_judged_alike(history: History, calm_s: int, settle_s: float) -> None:
    for late_s in (0.0, 6.0, 40.0):
        limits = {"calm_us": calm_s * S, "settle_s": settle_s, "drift_s": 1.0, "late_s": late_s}
        fast = check(history, END_S * S, **limits)  # type: ignore[arg-type]
        assert fast == plain_check(history, END_S * S, **limits)  # type: ignore[arg-type]


def some_time(events: int, labels: int, dice: Random) -> History:
    """Most labels are of watchers who came and went."""
    history, end_us = History(), END_S * S
    for number in range(labels):
        opened_us = dice.randrange(end_us // 2)
        name, family = f"label-{number}", dice.choice(FAMILIES)
        ef = UTuple(id_of((1 << 40) + number), family, Template(), None, {}, 60.0, name)
        history.watch_opened(name, ef, opened_us, opened_us)
        if number % 50:
            history.watch_closed(name, opened_us + 10 * S)
    for number in range(events):
        family, at_us = dice.choice(FAMILIES), number * end_us // events
        ea = UTuple(id_of(number), family, Exact("a", at_us), {}, None, dice.choice((4.0, 1000.0)))
        history.emitted(ea, at_us, at_us + 1, Outcome.OK)
    return history


def test_of_an_hour_only_those_pairs_are_looked_at_that_can_be_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = 0

    def counted(actual: UTuple, formal: UTuple) -> bool:
        nonlocal looked_at
        looked_at += 1
        return matches(actual, formal)

    monkeypatch.setattr(checker, "matches", counted)
    history = some_time(2_000, 500, Random(1))
    found = check(history, END_S * S, calm_us=80 * S, settle_s=5.0)
    stayed = sum(label.closed_us is None for label in history.labels.values())
    assert stayed == 10 and found.expected == looked_at > 1_000
    assert looked_at <= stayed * 2_000 // len(FAMILIES), "of 1,000,000"
