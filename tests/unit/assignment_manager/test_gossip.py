"""Who lives, by heartbeats heard directly or from others."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from assignment_manager.gossip import Alive, Gossip, Health, Timeouts
from utuple.cluster.line import ServerInfo

TIMEOUTS = Timeouts(suspect_s=2, dead_s=4, forget_s=100)


def info(name: str, since_us: int = 1, address: str = "") -> ServerInfo:
    return ServerInfo(name, address or f"{name}:7400", "manager", since_us)


def gossip(name: str = "m1", *seeds: str, since_us: int = 1) -> Gossip:
    return Gossip(info(name, since_us), seeds, TIMEOUTS)


def first(_: int) -> int:
    return 0


def names(alive: list[Alive]) -> list[str]:
    return [one.manager.name for one in alive]


def test_a_manager_that_falls_silent_is_suspected_then_dead_then_forgotten() -> None:
    one = gossip()
    one.hear([Alive(info("m2"), 1)], 10.0)
    seen = [one.health("m2", now_s) for now_s in (10.0, 11.9, 12.0, 13.9, 14.0, 109.0)]
    assert seen == [Health.ALIVE] * 2 + [Health.SUSPECTED] * 2 + [Health.DEAD] * 2
    one.beat(109.0)
    assert [known.name for known in one.known()] == ["m1", "m2"]
    one.beat(110.0)
    assert [known.name for known in one.known()] == ["m1"]


def test_a_beat_heard_again_is_no_sign_of_life_and_a_higher_one_is() -> None:
    one = gossip()
    one.hear([Alive(info("m2"), 5)], 0.0)
    one.hear([Alive(info("m2"), 5), Alive(info("m2"), 4)], 3.0)
    assert one.health("m2", 4.0) is Health.DEAD
    one.hear([Alive(info("m2"), 6)], 4.0)
    assert one.health("m2", 4.0) is Health.ALIVE


def test_the_dead_are_not_passed_on_so_that_they_can_be_forgotten() -> None:
    one = gossip()
    one.hear([Alive(info("m2"), 5), Alive(info("m3"), 5)], 0.0)
    one.hear([Alive(info("m3"), 6)], 3.0)
    assert names(one.living(4.0)) == ["m1", "m3"]


def test_a_manager_that_comes_back_under_its_name_is_alive_with_its_first_beat() -> None:
    one = gossip()
    one.hear([Alive(info("m2", since_us=1), 5_000)], 0.0)
    one.hear([Alive(info("m2", since_us=2, address="elsewhere:1"), 1)], 10.0)
    assert one.health("m2", 10.0) is Health.ALIVE
    assert one.address("m2") == "elsewhere:1"


def test_a_manager_outdoes_a_former_self_whose_clock_ran_ahead() -> None:
    reborn, other = gossip("m1", since_us=50), gossip("m2")
    former = Alive(info("m1", since_us=90), 7)
    other.hear([former], 0.0)
    other.hear(reborn.living(5.0), 5.0)
    assert other.health("m1", 5.0) is Health.DEAD
    reborn.hear([former], 5.0)
    other.hear(reborn.living(5.0), 5.0)
    assert other.health("m1", 5.0) is Health.ALIVE
    assert reborn.namesake is None


def test_a_living_namesake_elsewhere_is_noticed() -> None:
    one = gossip()
    one.hear([Alive(info("m1", since_us=9, address="other:1"), 1)], 0.0)
    assert one.namesake == "other:1"


def test_seeds_are_contacted_until_their_managers_are_known_and_again_when_they_die() -> None:
    one = gossip("m1", "m2:7400", "alias:7400", "m1:7400")
    assert one.partners(0.0, first) == ["m2:7400", "alias:7400"]
    one.hear([Alive(info("m2"), 1), Alive(info("m3"), 1)], 0.0)
    one.met("alias:7400", "m3")
    assert one.partners(0.0, first) == ["m2:7400"]
    assert one.partners(0.0, first) == ["m3:7400"]
    assert one.partners(4.0, first) == ["m2:7400", "alias:7400"]


@given(st.integers(1, 60), st.randoms(use_true_random=False))
def test_everyone_has_a_turn_before_anyone_has_another(count: int, dice: Random) -> None:
    one = gossip()
    names = [f"x{number}" for number in range(count)]
    one.hear([Alive(info(name), 1) for name in names], 0.0)
    for _ in range(3):
        met = [one.partners(0.0, dice.randrange) for _ in names]
        assert sorted(address for (address,) in met) == sorted(f"{name}:7400" for name in names)


def test_a_seed_that_turns_out_to_be_oneself_is_left_alone() -> None:
    one = gossip("m1", "localhost:7400")
    one.met("localhost:7400", "m1")
    assert one.partners(0.0, first) == []


def test_a_dead_manager_is_tried_beside_a_living_one_for_it_may_have_been_cut_off() -> None:
    one = gossip()
    one.hear([Alive(info("m2"), 1)], 0.0)
    one.hear([Alive(info("m3"), 1)], 4.0)
    assert one.partners(4.0, first) == ["m3:7400", "m2:7400"]


@given(
    st.lists(
        st.builds(
            lambda name, since, beat: Alive(info(name, since), beat),
            st.sampled_from(["m2", "m3"]),
            st.integers(1, 3),
            st.integers(1, 5),
        )
    ),
    st.randoms(use_true_random=False),
)
def test_rumours_in_any_order_give_the_newest_of_each_manager(
    heard: list[Alive], dice: Random
) -> None:
    one = gossip()
    shuffled = heard + heard[::2]
    dice.shuffle(shuffled)
    one.hear(shuffled, 0.0)
    newest = {
        name: max(a.version for a in heard if a.manager.name == name) for name in names(heard)
    }
    assert {a.manager.name: a.version for a in one.living(0.0)[1:]} == newest
