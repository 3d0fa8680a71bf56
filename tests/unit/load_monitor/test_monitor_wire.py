"""Servers' answers as values, the monitor's command line, and what it says of itself."""

from __future__ import annotations

from dataclasses import fields

import pytest

from load_monitor.__main__ import config_from
from load_monitor.config import Config
from load_monitor.observing import FamilyReport, SectionReport
from load_monitor.planning.policy import LIVE, Policy, adjusted
from load_monitor.poller import OrderedMove, Poller
from load_monitor.service import MonitorService
from load_monitor.transport import GrpcCalls, OrderAnswer
from load_monitor.wire import report_from_wire
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.cluster.move import Move, MoveKind
from utuple.errors import InvalidInput
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.runtime.clock import now_us
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, move_to_wire

RIGHT = Section(HASH_SPACE // 2, HASH_SPACE)
LINE = Line(RIGHT, 3, (Member("server-1"),))
ORDER = Move(MoveKind.SPLIT, RIGHT, 3, "server-1", "server-2", RIGHT.start + 1, "new")


def status(**more: object) -> pb.ServerStatus:
    given: dict[str, object] = {
        "name": "server-1",
        "load": pb.Load(queued=99, service_per_s=50, busy=0.5),
        "size_bytes": 10,
        "capacity_bytes": 100,
        "lines": [line_to_wire(LINE)],
    }
    return pb.ServerStatus(**(given | more))  # type: ignore[arg-type]


def test_a_server_is_sampled_by_its_busy_share_and_the_wait_one_may_expect() -> None:
    sample = report_from_wire(status()).sample
    assert (sample.name, sample.busy, sample.queue_wait_s) == ("server-1", 0.5, 2.0)
    assert (sample.size_bytes, sample.capacity_bytes) == (10, 100)


def test_sections_reach_to_the_end_of_the_hash_space() -> None:
    section = pb.SectionStatus(
        start=RIGHT.start,
        last=HASH_SPACE - 1,
        rows=7,
        templates=2,
        arrival_per_s=4.0,
        is_splittable=True,
        some_key=RIGHT.start + 5,
    )
    report = report_from_wire(status(sections=[section]))
    assert report.lines == (LINE,)
    assert report.sections == (
        SectionReport(RIGHT, 7, 2, is_splittable=True, some_key=RIGHT.start + 5),
    )
    assert report.sample.arrivals_per_s == {RIGHT: 4.0}
    section.ClearField("some_key")
    assert report_from_wire(status(sections=[section])).sections[0].some_key is None


def test_the_busiest_families_come_along() -> None:
    told = pb.FamilyRate(subject="bus", type="speed", arrival_per_s=2.5, templates=3)
    assert report_from_wire(status(families=[told])).families == (
        FamilyReport("bus", "speed", 2.5, 3),
    )


@pytest.mark.parametrize(
    ("step", "committed_us", "ended_us", "counts_from_us"),
    [
        (pb.LEARNING, 0, 0, 0),
        (pb.COMMITTED, 20, 0, 20),
        (pb.DONE, 20, 30, 20),
        (pb.ABORTED, 0, 25, 25),
        (pb.OVER, 0, 25, 25),
    ],
)
def test_a_move_stands_in_the_way_until_it_is_committed_or_given_up(
    step: pb.MoveStep.ValueType, committed_us: int, ended_us: int, counts_from_us: int
) -> None:
    record = pb.MoveRecord(
        id=b"1",
        move=move_to_wire(ORDER),
        step=step,
        lines=[line_to_wire(LINE)],
        began_us=10,
        committed_us=committed_us,
        ended_us=ended_us,
    )
    report = report_from_wire(status(moves=[record]))
    (told,) = report.moves
    assert (told.id, told.move, told.decided_us) == (b"1", ORDER, counts_from_us)


@pytest.mark.parametrize(
    "broken", [{"capacity_bytes": 0}, {"load": pb.Load(busy=float("nan"), service_per_s=1)}]
)
def test_what_no_server_in_its_right_mind_says_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        report_from_wire(status(**broken))


# ------------------------------------------------------------------------------------- the command line

NEEDED = "--name monitor-1 --listen 127.0.0.1:0 --managers 127.0.0.1:7400,127.0.0.1:7401".split()


def test_every_knob_of_the_policy_is_an_option_with_the_live_default() -> None:
    assert config_from(NEEDED).policy == LIVE
    for field in fields(Policy):
        value = getattr(LIVE, field.name)
        flag = f"--{field.name.replace('_', '-')}"
        assert getattr(config_from([*NEEDED, flag, str(value)]).policy, field.name) == value


def test_the_papers_names_set_the_thresholds_and_what_belongs_to_them_follows() -> None:
    policy = config_from([*NEEDED, "--t-p", "0.35", "--t-m", "0.4", "--hold-s", "5"]).policy
    assert (policy.processing_start, policy.memory_start, policy.hold_s) == (0.35, 0.4, 5.0)
    assert policy.processing_stop == pytest.approx(LIVE.processing_stop / 2)
    assert policy.helper_memory_max == pytest.approx(LIVE.helper_memory_max / 2)
    kept = adjusted(LIVE, {"processing_start": 0.35, "processing_stop": 0.34})
    assert kept.processing_stop == 0.34


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--poll-s 0", "poll_s"),
        ("--silent-s 1", "silent_s"),
        (
            "--processing-stop 0.9",
            "processing_stop: 0.9 is refused: must be below processing_start",
        ),
        ("--t-p 7", "processing_start: 7.0 is refused: must be above 0 and at most 1"),
        ("--moves-at-once 1.5", "whole number"),
        ("--moves-at-once inf", "whole number"),
        ("--listen nowhere", "HOST:PORT"),
        ("--managers ,", "at least one"),
        ("--telemetry x --telemetry-every 0", "telemetry_every"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(
    given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        config_from([*NEEDED, *given.split()])
    assert said in capsys.readouterr().err


def test_a_knob_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(InvalidInput, match="stay_on_s"):
        adjusted(LIVE, {"stay_onn_s": 1.0})


# ------------------------------------------------------------------------------------------- its status


async def test_it_waits_until_it_has_seen_the_cluster_and_then_says_what_it_orders() -> None:
    config = Config("monitor-1", "127.0.0.1:0", ("127.0.0.1:1",))
    poller = Poller(config, GrpcCalls(config), lambda: ())
    service = MonitorService(config, ServerInfo("monitor-1", "127.0.0.1:9", "monitor", 5), poller)
    asked = pb.StatusRequest()
    assert (await service.Status(asked, None)).state == "waiting"  # type: ignore[arg-type]
    poller.state.seen_us = now_us()
    given = OrderedMove(77, "server-1", ORDER, OrderAnswer(accepted=False, reason="busy"))
    poller.state.orders.appendleft(given)
    said = await service.Status(asked, None)  # type: ignore[arg-type]
    assert (said.name, said.state, said.since_us) == ("monitor-1", "watching", 5)
    (move,) = said.orders
    assert (move.at_us, move.home, move.accepted, move.reason) == (
        77,
        "server-1",
        False,
        "busy",
    )
    assert move.move == move_to_wire(ORDER)
