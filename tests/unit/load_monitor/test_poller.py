"""The poller against a twin of the cluster: no network, time by numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from load_monitor.config import Config
from load_monitor.observing import Report, SectionReport
from load_monitor.poller import Poller
from load_monitor.transport import KnownCluster, OrderAnswer
from load_monitor.window import Sample
from utuple.cluster.line import Line, ServerInfo, first_table
from utuple.cluster.move import Move, MoveKind, line_of, target
from utuple.cluster.record import MoveRecord, MoveStep
from utuple.cluster.table import Table

NOW_US = 5_000_000_000


class TwinCluster:
    """Servers a, b, c …, each at its own name as address; moves are made as soon as they are ordered."""

    def __init__(self, names: str) -> None:
        self.names = list(names)
        self.table_ = Table(first_table(self.names))
        self.busy = dict.fromkeys(names, 0.1)
        self.managers = {"m1", "m2", "m3"}
        self.silent: set[str] = set()
        self.leaving: set[str] = set()
        self.gone: set[str] = set()
        self.refuses = ""
        self.asked: list[str] = []
        self.orders: list[Move] = []
        self.done: list[tuple[str, MoveRecord]] = []
        self.now_us = NOW_US
        self.kept: set[str] = set()

    async def table(self, manager: str) -> KnownCluster | None:
        self.asked.append(manager)
        if manager not in self.managers:
            return None
        servers = [ServerInfo(n, n, "gone" if n in self.gone else "server") for n in self.names]
        servers += [ServerInfo("sca-1", "sca-1", "sca"), ServerInfo("monitor-1", "x", "monitor")]
        return KnownCluster(tuple(self.table_), tuple(servers))

    async def report(self, address: str) -> Report | None:
        assert address in self.names
        if address in self.silent:
            return None
        own = [line for line in self.table_ if line.member(address) is not None]
        arrivals = {line.section: 100.0 * self.busy[address] for line in own}
        return Report(
            Sample(address, self.busy[address], 0.0, 10, 1_000, arrivals),
            tuple(own),
            tuple(SectionReport(line.section, 5, some_key=_middle(line)) for line in own),
            tuple(move for home, move in self.done if home == address),
            address in self.leaving,
        )

    async def move(self, address: str, move: Move) -> OrderAnswer | None:
        self.orders.append(move)
        line = line_of(move, self.table_.overlapping(move.section))
        assert line.home == address
        if self.refuses:
            return OrderAnswer(accepted=False, reason=self.refuses)
        for after in target(move, line):
            self.table_.hear(after)
        id_ = bytes([len(self.done)])
        record = MoveRecord(id_, move, line, MoveStep.DONE, committed_us=self.now_us)
        self.done.append((address, record))
        return OrderAnswer(accepted=True, id=id_)

    async def keep_only(self, addresses: Iterable[str]) -> None:
        self.kept = set(addresses)


def _middle(line: Line) -> int:
    return (line.section.start + line.section.end) // 2


class Watch:
    """A monitor on a twin cluster, and its seconds."""

    def __init__(self, cluster: TwinCluster) -> None:
        self.cluster = cluster
        self.config = Config("monitor-1", "127.0.0.1:0", ("m:1", "m:2", "m:3"))
        self.poller = Poller(self.config, cluster, lambda: ("m1", "m2", "m3"))
        self.now_s = 0.0

    async def seconds(self, count: int) -> None:
        for _ in range(count):
            self.now_s += 1
            self.cluster.now_us += 1_000_000
            await self.poller.poll(self.now_s, self.cluster.now_us)

    @property
    def kinds(self) -> list[MoveKind]:
        return [move.kind for move in self.cluster.orders]


async def test_a_calm_cluster_is_left_alone() -> None:
    watch = Watch(TwinCluster("abc"))
    await watch.seconds(100)
    assert watch.cluster.orders == []
    assert watch.poller.state.polls == 100
    assert watch.poller.state.advice == ()
    assert [server.name for server in watch.poller.state.servers] == ["a", "b", "c"]


async def test_a_hot_server_is_helped_and_the_helper_goes_off_again_after_calm() -> None:
    watch = Watch(TwinCluster("abc"))
    watch.cluster.busy["a"] = 1.0
    await watch.seconds(10)
    assert watch.kinds == [MoveKind.HELP_PROCESSING]
    assert watch.cluster.orders[0].why.startswith("processing load of a")
    watch.cluster.busy = dict.fromkeys("abc", 0.05)
    await watch.seconds(180)
    assert watch.kinds == [MoveKind.HELP_PROCESSING, MoveKind.FLIP_OFF]
    given = watch.poller.state.orders[0]
    assert given.home == "a" and given.answer.accepted and given.move.kind is MoveKind.FLIP_OFF
    assert watch.poller.state.accepted == 2


async def test_a_second_monitor_knows_what_the_first_has_done() -> None:
    """Its history is the homes' records: it does not send off a helper that has just come."""
    cluster = TwinCluster("abc")
    cluster.busy["a"] = 1.0
    await Watch(cluster).seconds(10)
    cluster.busy = dict.fromkeys("abc", 0.05)
    second = Watch(cluster)
    await second.seconds(30)
    assert [move.kind for move in cluster.orders] == [MoveKind.HELP_PROCESSING]


async def test_a_refused_order_is_given_again_after_a_pause_and_shown_once() -> None:
    watch = Watch(TwinCluster("abc"))
    watch.cluster.busy["a"], watch.cluster.refuses = 1.0, "a move is under way"
    await watch.seconds(22)
    tried = len(watch.cluster.orders)
    assert 2 <= tried <= 1 + 22 / watch.config.again_s
    assert watch.poller.state.refused == tried
    assert [given.answer.reason for given in watch.poller.state.orders] == ["a move is under way"]


async def test_the_manager_that_answered_is_asked_again_and_the_others_when_it_is_gone() -> None:
    watch = Watch(TwinCluster("ab"))
    watch.cluster.managers = {"m2", "m3"}
    await watch.seconds(2)
    assert watch.cluster.asked == ["m1", "m2", "m2"]
    watch.cluster.managers = {"m3"}
    await watch.seconds(2)
    assert watch.cluster.asked[3:] == ["m2", "m1", "m3", "m3"]


async def test_law_6_with_every_manager_gone_the_known_servers_are_still_helped() -> None:
    watch = Watch(TwinCluster("abc"))
    await watch.seconds(1)
    watch.cluster.managers = set()
    watch.cluster.busy["a"] = 1.0
    await watch.seconds(10)
    assert watch.kinds == [MoveKind.HELP_PROCESSING]


async def test_a_monitor_that_sees_nobody_orders_nothing_and_says_when_it_last_saw() -> None:
    watch = Watch(TwinCluster("abc"))
    await watch.seconds(3)
    seen_us = watch.cluster.now_us
    watch.cluster.silent = set("abc")
    await watch.seconds(60)
    assert watch.cluster.orders == []
    assert watch.poller.state.seen_us == seen_us


async def test_a_silent_home_is_advised_about_once_however_long_it_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = Watch(TwinCluster("abc"))
    await watch.seconds(3)
    watch.cluster.silent = {"a"}
    with caplog.at_level("INFO", logger="load_monitor"):
        await watch.seconds(40)
        (advice,) = watch.poller.state.advice
        assert "Start a again" in advice.sentence
        watch.cluster.silent = set()
        await watch.seconds(2)
    assert watch.poller.state.advice == ()
    said = [record.getMessage().split("=")[0] for record in caplog.records]
    assert said == ["advice say", "advice withdrawn was"]


async def test_another_server_at_a_known_address_is_not_taken_for_it() -> None:
    watch = Watch(TwinCluster("ab"))
    namesake = Report(Sample("other", 0.1, 0.0, 10, 1_000))

    async def answer(address: str) -> Report | None:
        return namesake

    watch.cluster.report = answer  # type: ignore[method-assign]
    await watch.seconds(2)
    assert watch.poller.state.seen_us == 0


async def test_a_leaving_server_is_drained_and_one_that_is_gone_is_no_longer_asked() -> None:
    watch = Watch(TwinCluster("abc"))
    watch.cluster.leaving = {"c"}
    await watch.seconds(60)
    assert watch.kinds == [MoveKind.HELP_MEMORY, MoveKind.DRAIN]
    assert all(line.member("c") is None for line in watch.cluster.table_)
    watch.cluster.gone = {"c"}
    await watch.seconds(1)
    assert "c" not in watch.cluster.kept
    assert [server.name for server in watch.poller.state.servers] == ["a", "b"]


async def test_an_order_without_an_answer_is_no_failure_of_the_monitor() -> None:
    watch = Watch(TwinCluster("abc"))
    watch.cluster.busy["a"] = 1.0

    async def no_answer(address: str, move: Move) -> OrderAnswer | None:
        return None

    watch.cluster.move = no_answer  # type: ignore[method-assign]
    await watch.seconds(12)
    assert watch.poller.state.refused >= 1
    assert watch.poller.state.orders[0].answer.reason == "no answer in time"
    assert replace(watch.poller.state.orders[0].answer, reason="") == OrderAnswer(accepted=False)


async def test_while_the_first_table_is_being_given_out_nobody_is_taken_for_a_newcomer() -> None:
    """A server that got a line by a move would not adopt its own any more."""
    cluster = TwinCluster("abc")
    cluster.table_ = Table(first_table(["a", "b", "c"])[:2])
    watch = Watch(cluster)
    await watch.seconds(120)
    assert cluster.orders == []
