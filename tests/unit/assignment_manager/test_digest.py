"""Section 3.3 at size: what gossip costs does not grow with the table, and a change is everywhere soon."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import xor
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignment_manager.digest import BUCKETS, Detail, Digests, Servers, bucket_of
from assignment_manager.peer import Peer, Peers
from tests.unit.assignment_manager.virtual_ring import GOSSIP_S, VirtualRing, Weather
from utuple.cluster.changes import helped
from utuple.cluster.line import Line, ServerInfo, first_table
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section

FIFTY = [f"manager-{number}" for number in range(1, 51)]
starts = st.integers(0, HASH_SPACE - 2)
peers = st.builds(
    lambda start, length, epoch: Peer(Section(start, min(start + length, HASH_SPACE)), epoch),
    starts,
    st.integers(1, HASH_SPACE),
    st.integers(1, 3),
)


def content_of(held: Iterable[Peer]) -> Callable[[int, int], list[Peer]]:
    return lambda first, last: [p for p in held if first <= bucket_of(p.section.start) <= last]


@given(st.lists(peers, max_size=12))
def test_digests_of_what_was_touched_are_those_of_all(heard: list[Peer]) -> None:
    ring = Peers()
    kept = Digests(content_of(ring))
    for peer in heard:
        if ring.hear(peer):
            kept.touch(peer.section)
        anew = Digests(content_of(ring))
        anew.touch(Section(0, HASH_SPACE))
        assert kept.all() == anew.all()
        assert kept.whole == anew.whole == reduce(xor, kept.all())


@given(st.lists(peers, max_size=12), st.randoms(use_true_random=False))
def test_the_order_in_which_servers_came_does_not_show(heard: list[Peer], dice: Random) -> None:
    infos = [ServerInfo(f"s{p.section.start % 7}", "h:1", "server", p.epoch) for p in heard]
    newest = {info.name: info for info in infos}
    one, other = Servers(), Servers()
    for info in infos:
        one.put(info)
    for info in dice.sample(list(newest.values()), len(newest)):
        other.put(info)
    assert one.all() == other.all()
    assert one.whole == other.whole == reduce(xor, one.all())
    assert one.by_name == other.by_name


@given(st.lists(peers, min_size=1, max_size=6, unique_by=lambda p: p.section.start), st.data())
def test_only_buckets_that_differ_are_told(held: list[Peer], data: st.DataObject) -> None:
    changed = data.draw(st.sampled_from(held))
    newer = [Peer(p.section, p.epoch + (p is changed)) for p in held]
    nothing = (0,) * BUCKETS
    mine, theirs = map(marks_of, (held, newer))
    expected = (bucket_of(changed.section.start),)
    for one, other in (
        (Detail(nothing, mine, nothing), Detail(nothing, theirs, nothing)),
        (Detail(nothing, nothing, mine), Detail(nothing, nothing, theirs)),
    ):
        assert one.differing(other) == expected
        assert one.differing_servers(other) == ()


def marks_of(held: list[Peer]) -> tuple[int, ...]:
    digests = Digests(content_of(held))
    digests.touch(Section(0, HASH_SPACE))
    return digests.all()


def settled(lines: list[Line], managers: list[str], seconds: float = 12.0) -> VirtualRing:
    ring = VirtualRing(managers, 5, Weather())
    ring.announced = lambda: list(lines)
    ring.announced_to = lambda name: name == managers[0]
    ring.run(seconds)
    ring.announced = list
    ring.run(8.0)
    return ring


def test_in_a_steady_state_ten_times_the_lines_cost_no_more_bytes() -> None:
    said = []
    for count in (100, 1_000):
        ring = settled(first_table([f"server-{n}" for n in range(count)]), FIFTY[:10])
        ring.rumours.clear()
        ring.run(10.0)
        assert len(ring.rumours) > 100
        assert not any(rumour.tells or rumour.detail for rumour in ring.rumours)
        said.append(sum(ring.bytes_of(rumour) for rumour in ring.rumours))
    assert said[1] <= 1.1 * said[0]


@pytest.mark.slow
def test_a_changed_line_is_known_to_fifty_managers_within_a_few_rounds_and_asked_for_in_one_hop() -> (
    None
):
    lines = first_table([f"server-{n}" for n in range(300)])
    ring = settled(lines, FIFTY, seconds=20.0)
    changed = helped(lines[7], lines[7].home, "server-99")
    first = ring.managers[FIFTY[3]]
    ring._pass_on(first, first.hear_announcement(ring.home_of(changed), [changed]))
    rounds = 0
    while any(
        m.directory.peers.find(changed.section.start) != Peer(changed.section, changed.epoch)
        for m in ring.managers.values()
    ):
        ring.run(GOSSIP_S)
        rounds += 1
        assert rounds <= 12, "log2(50) is under six"
    ring.run(5.0)
    for name in FIFTY:
        line, asked = ring.ask(name, changed.section.start)
        assert line == changed
        assert asked <= 1
    holders = [m for m in ring.managers.values() if m.directory.lines.find(changed.section.start)]
    assert len(holders) == 3
