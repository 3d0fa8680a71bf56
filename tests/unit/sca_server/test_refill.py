"""Which keys may be served: every member of their line was read, whatever moves meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sca_server.filling.refill import THE_TABLE, Refill, Refills
from utuple.cluster.line import Line, Member, ServerInfo, first_table
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section

WHOLE = Section(0, HASH_SPACE)
HALF = HASH_SPACE // 2


def refill() -> Refill:
    return Refill(first_retry_s=1.0, longest_retry_s=4.0)


def line(*names: str, epoch: int = 1, section: Section = WHOLE) -> Line:
    return Line(section, epoch, tuple(Member(name) for name in names))


def info(name: str, address: str = "host:1", role: str = "server", since_us: int = 0) -> ServerInfo:
    return ServerInfo(name, address, role, since_us)


def read(tried: Refill, name: str, own: list[Line], now_s: float = 0) -> bool:
    tried.begin(name)
    return tried.end(name, own, own, now_s)


def names(servers: list[ServerInfo]) -> list[str]:
    return [server.name for server in servers]


def test_nothing_is_served_before_the_table_is_known() -> None:
    tried = refill()
    assert tried.waits_for(7) == THE_TABLE
    assert tried.waiting_for == [THE_TABLE] and not tried.is_complete


def test_a_key_is_served_when_every_member_of_its_line_was_read_and_no_sooner() -> None:
    tried = refill()
    lines = first_table(["s1", "s2"])
    both = Line(lines[0].section, 2, (Member("s1"), Member("s3", accumulatable=False)))
    tried.hear([*lines, both], [info("s1"), info("s2"), info("s3")])
    seen = []
    for name, own in (("s2", [lines[1]]), ("s1", [both]), ("s3", [both])):
        seen.append((tried.waits_for(0), tried.waits_for(HALF), tried.is_complete))
        assert read(tried, name, own)
    assert seen == [("s1", "s2", False), ("s1", None, False), ("s3", None, False)]
    assert (tried.waits_for(0), tried.waiting_for, tried.is_complete) == (None, [], True)


def test_a_key_without_a_line_waits_for_the_table_and_the_others_are_served() -> None:
    tried = refill()
    part = line("s1", section=Section(0, HALF))
    tried.hear([part], [info("s1")])
    read(tried, "s1", [part])
    assert (tried.waits_for(0), tried.waits_for(HALF)) == (None, THE_TABLE)
    assert tried.waiting_for == [THE_TABLE] and not tried.is_complete


def test_a_suspended_member_is_waited_for_because_it_may_hold_what_nobody_else_has() -> None:
    tried = refill()
    gone = Line(WHOLE, 2, (Member("s1"), Member("s2", accumulatable=False, suspended=True)))
    tried.hear([gone], [info("s1"), info("s2")])
    read(tried, "s1", [gone])
    assert tried.waits_for(0) == "s2"


def test_a_server_that_joins_a_line_is_read_before_its_keys_are_served_again() -> None:
    tried = refill()
    tried.hear([line("s1")], [info("s1")])
    read(tried, "s1", [line("s1")])
    helped = line("s1", "s2", epoch=2)
    tried.hear([helped], [info("s2")])
    assert tried.waits_for(0) == "s2"
    assert names(tried.due(0)) == ["s2"]
    read(tried, "s2", [helped])
    assert tried.waits_for(0) is None


def test_a_share_that_goes_again_before_it_was_read_leaves_the_old_reading_to_be_kept_up_to_date() -> (
    None
):
    refills = Refills(refill())
    refills.hear([line("s1")], [info("s1")])
    read(refills.steady, "s1", [line("s1")])
    refills.again()
    assert refills.reading.waits_for(0) == "s1" and refills.steady.waits_for(0) is None
    refills.nothing_gained()
    helped = line("s1", "s2", epoch=2)
    refills.hear([helped], [info("s2")])
    assert names(refills.reading.due(0)) == ["s2"]
    read(refills.reading, "s2", [helped])
    assert refills.steady.waits_for(0) is None


def test_servers_are_read_once_and_managers_and_sca_servers_not_at_all() -> None:
    tried = refill()
    tried.hear([line("s1")], [info("s1"), info("m1", role="manager"), info("sca-1", role="sca")])
    assert names(tried.due(0)) == ["s1"]
    tried.begin("s1")
    assert tried.due(0) == []
    tried.end("s1", [line("s1")], [line("s1")], 0)
    assert tried.due(1e9) == []


def test_attempts_follow_with_a_doubled_pause_up_to_the_longest() -> None:
    tried = refill()
    tried.hear([line("s1")], [info("s1")])
    now_s, pauses = 0.0, []
    for _ in range(4):
        tried.begin("s1")
        tried.failed("s1", now_s)
        waits = [wait for wait in (1.0, 2.0, 4.0, 8.0) if tried.due(now_s + wait)]
        pauses.append(min(waits))
        assert not tried.due(now_s + min(waits) - 0.001)
        now_s += min(waits)
    assert pauses == [1.0, 2.0, 4.0, 4.0]


def test_a_server_is_read_where_it_was_last_started() -> None:
    tried = refill()
    tried.hear([], [info("s1", "old:1", since_us=1)])
    tried.hear([], [info("s1", "new:1", since_us=2)])
    tried.hear([], [info("s1", "old:1", since_us=1)])
    assert [server.address for server in tried.due(0)] == ["new:1"]


def test_a_server_that_does_not_know_its_line_yet_does_not_count_as_read() -> None:
    tried = refill()
    helped = line("s1", "s2", epoch=2)
    tried.hear([helped], [info("s1"), info("s2")])
    assert not read(tried, "s2", [])
    assert tried.waits_for(0) == "s1"
    assert read(tried, "s1", [helped])
    assert tried.waits_for(0) == "s2"
    assert tried.due(0.999) == [] and names(tried.due(1.0)) == ["s2"]


def test_a_server_that_left_its_line_while_it_was_read_does_not_count() -> None:
    tried = refill()
    full, left = line("x", "y", epoch=1), line("y", epoch=2)
    tried.hear([full], [info("x"), info("y")])
    assert read(tried, "y", [full])
    tried.begin("x")
    tried.end("x", [full], [left], 0)
    assert tried.waits_for(0) == "y", "what x had may have gone to y after y was read"


def test_a_read_counts_only_of_a_server_that_served_its_line_before_and_after_it() -> None:
    tried = refill()
    full = line("x", "y")
    tried.hear([full], [info("x"), info("y")])
    for before, after in (([full], []), ([], [full])):
        tried.begin("x")
        assert not tried.end("x", before, after, 0)
    assert tried.waits_for(0) == "x"


def test_where_epochs_were_not_seen_a_server_may_have_left_and_come_back() -> None:
    tried = refill()
    full, again = line("x", "y", epoch=1), line("y", "x", epoch=3)
    tried.hear([full], [info("x"), info("y")])
    assert read(tried, "y", [full])
    tried.hear([again])
    assert tried.waits_for(0) == "y", "in epoch 2 y may have got what x had"
    assert not read(tried, "y", [full]), "and does not know it yet"
    assert read(tried, "y", [again])


def test_a_server_that_left_after_it_was_read_is_no_loss() -> None:
    tried = refill()
    full, left = line("x", "y", epoch=1), line("y", epoch=2)
    tried.hear([full], [info("x"), info("y")])
    read(tried, "x", [full])
    read(tried, "y", [full])
    tried.hear([left])
    assert tried.is_complete


def test_a_read_under_way_does_not_count_when_a_server_we_had_not_read_leaves() -> None:
    tried = refill()
    full, left = line("x", "y", epoch=1), line("y", epoch=2)
    tried.hear([full], [info("x"), info("y")])
    tried.begin("y")
    tried.hear([left])
    assert not tried.end("y", [left], [left], 0)
    assert read(tried, "y", [left])


def test_a_member_that_has_not_heard_who_left_is_read_again() -> None:
    tried = refill()
    full, left = line("x", "y", epoch=1), line("y", epoch=2)
    tried.hear([left], [info("y")])
    assert not read(tried, "y", [full])
    assert read(tried, "y", [left])


# ------------------------------------------------------------------- a cluster that moves under our eyes


@dataclass
class Cluster:
    """One line. Draining X moves its CFs to Y: they count there once Y has heard of the new epoch, and
    are deleted at X once X has (design, section 6)."""

    lines: list[Line] = field(default_factory=lambda: [line("a", "b", "c")])
    heard: dict[str, int] = field(default_factory=lambda: dict.fromkeys("abcd", 0))
    stored: dict[str, set[str]] = field(default_factory=lambda: {n: {f"cf-{n}"} for n in "abc"})
    shadows: list[tuple[str, str, int, set[str]]] = field(default_factory=list)

    @property
    def newest(self) -> Line:
        return self.lines[-1]

    def own(self, name: str) -> list[Line]:
        return [self.lines[self.heard[name]]]

    def has(self, name: str) -> set[str]:
        found = set(self.stored.get(name, ()))
        for x, y, epoch_at, moved in self.shadows:
            if name == y and self.heard[y] >= epoch_at:
                found |= moved
            if name == x and self.heard[x] >= epoch_at:
                found -= moved
        return found

    def change(self, members: list[str]) -> None:
        self.lines.append(line(*members, epoch=self.newest.epoch + 1))

    def drain(self, x: str, y: str) -> None:
        members = [member.name for member in self.newest.members]
        ready = x in members and y in members and x != y
        if not ready or any(self.heard[n] != len(self.lines) - 1 for n in (x, y)):
            return  # the home decides a move of members that know the line
        moved = self.has(x)
        self.change([name for name in members if name != x])
        self.shadows.append((x, y, len(self.lines) - 1, moved))

    def help(self, name: str) -> None:
        members = [member.name for member in self.newest.members]
        if name not in members:
            self.change([*members, name])


servers = st.sampled_from("abcd")
moves = st.one_of(
    st.tuples(st.just("drain"), servers, servers),
    st.tuples(st.just("help"), servers),
    st.tuples(st.just("learn"), servers),
    st.tuples(st.just("table"), st.integers(0, 6)),
    st.tuples(st.sampled_from(["begin", "send", "end", "read", "fail"]), servers),
)


@dataclass
class Eyes:
    """The sCA server: what it has been sent, and the reads under way."""

    cluster: Cluster
    refill: Refill = field(default_factory=refill)
    known: set[str] = field(default_factory=set)
    under_way: dict[str, list[Line]] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)

    def step(self, what: tuple[object, ...]) -> None:
        match what:
            case ("drain", str(x), str(y)):
                self.cluster.drain(x, y)
            case ("help", str(name)):
                self.cluster.help(name)
            case ("learn", str(name)):
                self.cluster.heard[name] = len(self.cluster.lines) - 1
            case ("table", int(back)):
                at = max(0, len(self.cluster.lines) - 1 - back)
                self.refill.hear([self.cluster.lines[at]], [info(name) for name in "abcd"])
            case ("read", str(name)):
                for part in ("begin", "send", "end"):
                    self.step((part, name))
            case (str(part), str(name)):
                self.reading(part, name)

    def reading(self, part: str, name: str) -> None:
        if part == "begin" and name in names(self.refill.due(1e9)):
            self.refill.begin(name)
            self.under_way[name] = self.cluster.own(name)
            self.sent.discard(name)
        elif name in self.under_way and part == "send":
            self.known |= self.cluster.has(name)
            self.sent.add(name)
        elif name in self.under_way and part == "fail":
            self.refill.failed(name, 0)
            del self.under_way[name]
        elif name in self.under_way and part == "end" and name in self.sent:
            self.refill.end(name, self.under_way.pop(name), self.cluster.own(name), 0)


@pytest.mark.slow
@settings(max_examples=600)
@given(st.lists(moves, max_size=40))
@example([("drain", "b", "a"), ("read", "a"), ("help", "b")])
def test_what_is_served_is_known_whole_whatever_moves_meanwhile(
    script: list[tuple[object, ...]],
) -> None:
    eyes = Eyes(Cluster())
    eyes.step(("table", 0))
    for what in script:
        eyes.step(what)
        if eyes.refill.waits_for(0) is None:
            assert eyes.known == {"cf-a", "cf-b", "cf-c"}
    for name in "abcd":  # when it is quiet again, it fills
        eyes.step(("learn", name))
        eyes.step(("fail", name))
    for _ in range(3):
        eyes.step(("table", 0))
        for name in "abcd":
            eyes.step(("read", name))
    assert eyes.refill.is_complete and eyes.known == {"cf-a", "cf-b", "cf-c"}
