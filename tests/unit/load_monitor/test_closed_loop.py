"""The loop closed: demand, table, stores, window and planner together, in virtual time."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from load_monitor.planning.advice import AddServers, AskLess, StartAgain
from load_monitor.planning.policy import Policy
from load_monitor.planning.snapshot import Done
from tests.unit.load_monitor.virtual_load import VirtualLoad
from utuple.cluster.move import MoveKind
from utuple.model.key import HASH_SPACE

EIGHT = [f"S{number}" for number in range(8)]
HOT = 12_345
ROUND_S = Policy().hold_s + Policy().settle_s + 20
"""Of one step of A.2: seen, held, moved, settled."""


def test_a_2_one_hot_key_spreads_over_eight_servers_in_as_many_rounds_and_shrinks_back() -> None:
    cluster = VirtualLoad(EIGHT, lambda now_s: {HOT: 4_500.0 if now_s < 900 else 0.0})
    cluster.run(8 * ROUND_S)
    policy, line = cluster.policy, cluster.line_of(HOT)
    assert all(load < policy.processing_start for load in cluster.loads.values())
    assert len(line.accumulatable) == len(line.members) == 7  # 4.5 servers' work at 0.65
    assert len(cluster.done) == 6

    cluster.run(890)
    assert len(cluster.done) == 6, "a balanced cluster is left alone"

    cluster.run(900 + 20 * ROUND_S)
    assert [len(line.members) for line in cluster.lines()] == [1] * 8
    assert cluster.line_of(HOT).home == "S0"


class Jumper:
    """Puts the load of two and a half servers on one key, and jumps to another as soon as that key's line
    has been helped, or after a few seconds."""

    def __init__(self, seed: int, dwells_s: list[float]) -> None:
        self._dice, self._dwells_s = random.Random(seed), dwells_s
        self._keys = [self._dice.randrange(HASH_SPACE) for _ in range(24)]
        self._key, self._until_s, self._seen = self._keys[0], 0.0, 0
        self.done: list[Done] = []

    def __call__(self, now_s: float) -> dict[int, float]:
        if now_s >= self._until_s or len(self.done) != self._seen:
            self._seen = len(self.done)
            self._until_s = now_s + self._dice.choice(self._dwells_s)
            self._key = self._dice.choice(self._keys)
        return {key: 2_500.0 if key == self._key else 20.0 for key in self._keys}


@pytest.mark.parametrize("dwells_s", [[2.0, 4.0, 6.0], [10.0, 20.0, 40.0], [600.0]])
def test_load_that_jumps_between_keys_does_not_make_the_planner_thrash(
    dwells_s: list[float],
) -> None:
    jumper = Jumper(7, dwells_s)
    cluster = VirtualLoad([f"S{n:02d}" for n in range(12)], jumper, lifetime_s=300.0)
    jumper.done = cluster.done
    widest = 0
    for minute in range(1, 61):
        cluster.run(minute * 60.0)
        widest = max(widest, *(len(line.members) for line in cluster.lines()))
    assert widest <= 6, "about the members that bear the load, not all servers"
    assert len(cluster.lines()) == 12
    per_section = Counter(done.move.section for done in cluster.done)
    assert max(per_section.values(), default=0) <= cluster.policy.moves_per_section
    _check_that_flags_rest(cluster)


def _check_that_flags_rest(cluster: VirtualLoad) -> None:
    """A member that came on stays for stay_on_s, one that went off for stay_off_s."""
    flips: dict[tuple[object, str], list[tuple[float, bool]]] = {}
    for done in cluster.done:
        for name, on in ((done.move.learner, True), (done.move.goes_off, False)):
            if name is not None:
                flips.setdefault((done.move.section, name), []).append((done.at_s, on))
    policy = cluster.policy
    for times in flips.values():
        for (before_s, was_on), (after_s, is_on) in pairwise(times):
            assert was_on != is_on
            assert after_s - before_s >= (policy.stay_on_s if was_on else policy.stay_off_s)


def test_section_3_4_a_storm_of_reads_moves_nothing_and_is_told() -> None:
    """Beside it few EAs come in: whoever helped would be asked as much, and then help would have to be helped."""
    cluster = VirtualLoad(EIGHT, lambda _: {HOT: 100.0}, asked=lambda _: {HOT: 0.9})
    cluster.run(1_800.0)
    assert cluster.done == []
    (advice,) = cluster.last_plan.advice
    assert isinstance(advice, AskLess) and advice.server == cluster.line_of(HOT).home


def test_section_3_4_a_storm_of_eas_gets_help_also_while_some_reads_go_on() -> None:
    """And help ends: with each helper there is less of what it can take, and as much of what it cannot."""

    def until_20_min(now_s: float) -> dict[int, float]:
        return {HOT: 1_500.0 if now_s < 1_200.0 else 10.0}

    cluster = VirtualLoad(EIGHT, until_20_min, asked=lambda _: {HOT: 0.2})
    cluster.run(1_200.0)
    line = cluster.line_of(HOT)
    assert 3 <= len(line.accumulatable) <= 6
    assert max(cluster.loads[name] for name in line.accumulatable) < Policy().processing_start
    before = len(cluster.done)
    cluster.run(6_000.0)
    assert len(cluster.line_of(HOT).members) == 1, "all have gone again"
    assert len(cluster.done) - before <= 2 * len(line.members), "and nobody came back"


def test_section_3_5_full_stores_hand_on_and_none_overflows() -> None:
    """Twenty rows a second for an hour each are 72,000, all of one key: more than three stores may hold."""
    cluster = VirtualLoad(EIGHT, lambda _: {HOT: 20.0}, lifetime_s=3_600.0, capacity_rows=25_000)
    for quarter in range(1, 17):
        cluster.run(quarter * 900.0, step_s=10.0)
        assert max(map(cluster.memory, EIGHT)) < 0.9
    line = cluster.line_of(HOT)
    assert any(done.move.kind is MoveKind.HELP_MEMORY for done in cluster.done)
    assert len(line.accumulatable) == 1 and 4 <= len(line.members) <= 6
    assert len(cluster.lines()) == len(EIGHT)


def test_section_3_6_a_server_that_is_added_soon_has_a_section_and_lines_stay_few() -> None:
    keys = [HASH_SPACE * at // 40 for at in range(40)]
    cluster = VirtualLoad(EIGHT[:3], lambda _: dict.fromkeys(keys, 45.0))
    cluster.run(60)
    assert cluster.done == []
    cluster.names += EIGHT[3:5]
    cluster.run(600)
    assert [done.move.kind for done in cluster.done if done.move.learner] == [MoveKind.SPLIT] * 2
    assert len(cluster.lines()) == 5
    assert all(len(line.members) == 1 for line in cluster.lines()), "what was given has expired"
    assert {line.home for line in cluster.lines()} == set(EIGHT[:5])


def test_a_draining_server_ends_in_no_line_and_takes_nothing_along() -> None:
    keys = [HASH_SPACE * at // 40 for at in range(40)]
    cluster = VirtualLoad(EIGHT[:4], lambda _: dict.fromkeys(keys, 20.0), lifetime_s=86_400.0)
    cluster.run(100)
    cluster.draining.add("S1")
    cluster.run(400)
    assert all(line.member("S1") is None for line in cluster.lines())
    assert cluster.rows("S1") == 0
    done = len(cluster.done)
    cluster.run(1_000)
    later = [done.move.kind for done in cluster.done[done:]]
    assert later in ([], [MoveKind.MERGE]), "a drained server is not new"


def test_servers_that_come_and_go_leave_as_many_lines_as_servers_and_nothing_takes_turns() -> None:
    """Section 3.6, backwards: the second half of a section that was split for a server that is gone is no line of its own."""
    keys = [HASH_SPACE * at // 40 for at in range(40)]
    cluster = VirtualLoad(EIGHT[:2], lambda _: dict.fromkeys(keys, 20.0))
    for at, name in enumerate(EIGHT[2:6]):
        cluster.names.append(name)
        cluster.run(cluster.now_s + 900)
        assert len(cluster.lines()) == 3, f"S{at + 2} has its line"
        cluster.draining.add(name)
        cluster.run(cluster.now_s + 1_500)
        cluster.names.remove(name)
        assert len(cluster.lines()) == 2
    merges = [done for done in cluster.done if done.move.kind is MoveKind.MERGE]
    splits = [done for done in cluster.done if done.move.kind is MoveKind.SPLIT]
    assert len(merges) == len(splits) == 4
    before = len(cluster.done)
    cluster.run(cluster.now_s + 3_600.0, step_s=10.0)
    assert len(cluster.done) == before, "and then it rests"


def test_a_silent_helper_is_suspended_and_returns_when_it_answers() -> None:
    cluster = VirtualLoad(EIGHT[:3], lambda _: {HOT: 1_200.0})
    cluster.run(120)
    assert cluster.line_of(HOT).accumulatable == ("S0", "S1")
    cluster.down.add("S1")
    cluster.run(160)
    assert {done.move.kind for done in cluster.done} >= {MoveKind.SUSPEND, MoveKind.HELP_PROCESSING}
    assert "S1" not in cluster.line_of(HOT).accumulatable
    asked = [advice.server for advice in cluster.last_plan.advice if isinstance(advice, StartAgain)]
    assert asked == ["S1"], "it is home of a line of its own"
    cluster.down.clear()
    cluster.run(400)
    assert not any(member.suspended for member in cluster.line_of(HOT).members)


def test_when_all_are_busy_the_operator_is_told_before_and_nothing_moves() -> None:
    keys = [HASH_SPACE * at // 32 + 1 for at in range(32)]

    def rising(now_s: float) -> dict[int, float]:
        return dict.fromkeys(keys, 40.0 + now_s / 30)

    cluster = VirtualLoad(EIGHT, rising)
    cluster.run(1_900)
    (advice,) = cluster.last_plan.advice
    assert isinstance(advice, AddServers)
    assert advice.load == "processing"
    # 32 keys in 8 servers: 0.65 of a server is reached at 162.5 a key, after 3675 s.
    assert advice.by_s == pytest.approx(3_675, rel=0.05)
    assert cluster.done == []
