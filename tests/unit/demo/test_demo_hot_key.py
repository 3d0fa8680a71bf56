"""The demo's hot key: its load is too much for one server, its cluster is what it says, and its accounts tell what
went wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from load_monitor.__main__ import config_from as monitor_config
from utuple.admin.moves import ShownMove
from utuple.admin.programs import Load, Monitor, Server, Watched
from utuple.admin.snapshot import Snapshot
from utuple.cluster.changes import flagged, helped
from utuple.cluster.line import Line, first_table
from utuple.demo import overload, scenario
from utuple.demo.sight import rows_of, seen_in, told
from utuple.demo.tally import Account, HotKey, Outcome, rates_per_s
from utuple.errors import InvalidInput
from utuple.local.layout import Layout, Role, command_of
from utuple.local.supervising.reuse import policy_of
from utuple.model.key import key_of
from utuple.server.__main__ import config_from as server_config


def events(count: int = 600) -> list[scenario.Event]:
    dice = Random(1)
    return [overload.meter_event(n, n % overload.METERS, dice) for n in range(count)]


# --- the load, and the cluster it comes to


def test_the_load_is_too_much_for_one_server_and_for_two_but_not_for_all() -> None:
    load = overload.WANTED_PER_S / overload.CAPACITY_PER_S
    assert load > 1
    assert load / 2 > overload.THRESHOLD
    assert load / overload.SERVERS < overload.THRESHOLD


def command(role: Role, *knobs: str) -> list[str]:
    """What the program is told, after `python -P -m MODULE`."""
    layout = Layout()
    program = layout.of_role(role)[0]
    return command_of(program, layout, python="python", database="postgresql://x", policy=knobs)[4:]


def test_the_servers_of_the_demo_are_slow_and_its_monitor_has_the_other_knobs() -> None:
    server = server_config(command(Role.SERVER, *overload.KNOBS))
    assert server.service_us == overload.WORK_US
    policy = monitor_config(command(Role.MONITOR, *overload.KNOBS)).policy
    assert policy.processing_start == overload.THRESHOLD
    assert policy.settle_s < policy.stay_on_s < overload.LIFETIME_S
    for role in (Role.MANAGER, Role.SCA):
        assert command(role, *overload.KNOBS) == command(role)


def test_an_operator_cannot_slow_servers_by_accident() -> None:
    with pytest.raises(InvalidInput):
        policy_of([f"service_us={overload.WORK_US}"])


def test_the_demo_says_that_its_servers_are_slowed() -> None:
    said = " ".join(overload.HONESTLY)
    assert "10 ms" in said and "100 a second" in said and str(overload.THRESHOLD) in said


def test_every_application_of_the_hot_key_has_something_to_wait_for_and_one_gets_all() -> None:
    found = [len(asked.expects(scenario.actuals(events()))) for asked in overload.WATCHES]
    assert max(found) == 600 and 0 < min(found) < 600
    assert all(asked.family == overload.METER_POWER for asked in overload.WATCHES)


# --- what is seen of it


def hot_line(lines: list[Line]) -> Line:
    return next(line for line in lines if key_of(*overload.METER_POWER) in line.section)


HELP = ShownMove(
    "01",
    kind="help-processing",
    member="server-3",
    helper="server-1",
    step="done",
    why="processing load of server-3 is 0.94",
    seconds=0.47,
)


def move(line: Line, **given: Any) -> ShownMove:
    return replace(
        HELP, start=f"{line.section.start:016x}", end=f"{line.section.end:016x}", **given
    )


def server(name: str, pid: int | None = 7) -> Server:
    return Server(name, pid=pid, registered=40, load=Load(busy=0.9))


def test_a_look_finds_the_line_of_the_key_and_the_moves_of_its_section() -> None:
    lines = first_table(["server-1", "server-2", "server-3"])
    line = hot_line(lines)
    elsewhere = next(one for one in lines if one != line)
    snapshot = Snapshot(
        True,
        lines,
        [server("server-1"), server("server-2", pid=None)],
        [],
        [],
        [Monitor("monitor-1", servers=(Watched("server-1", 0.95),))],
        [move(line), move(elsewhere, id="02")],
    )
    seen = seen_in(snapshot, overload.METER_POWER, 5.0)
    assert seen is not None and seen.line == line and seen.line.home in seen.said
    assert [one.id for one in seen.moves] == ["01"]
    assert seen.registered == {"server-1": 40}, "one that does not answer has counted nothing"
    assert (seen.busy, seen.processing) == ({"server-1": 0.9}, {"server-1": 0.95})
    assert seen_in(replace(snapshot, lines=[elsewhere]), overload.METER_POWER, 5.0) is None


def test_the_table_is_drawn_as_in_figure_3_and_fits_a_terminal() -> None:
    before = first_table(["server-1", "server-2", "server-3"])
    line = hot_line(before)
    for helper in [own.home for own in before if own.home != line.home]:
        line = helped(line, line.home, helper)
    lines = [line if own.section == line.section else own for own in before]
    rows = rows_of(lines, line)
    (marked,) = [row for row in rows if row.startswith("→")]
    assert marked.endswith(" 1, ".join(member.name for member in line.members) + " 1")
    assert len(rows) == 3 and max(map(len, rows)) <= 80
    off = flagged(line, line.members[-1].name, accumulatable=False)
    assert rows_of([off], off)[0].endswith(f"{off.members[-1].name} 0")


def test_a_move_is_told_with_its_reason() -> None:
    line = hot_line(first_table(["server-1"]))
    assert told(move(line)).startswith("server-1 helps server-3 (processing load): processing load")
    assert "given up" in told(move(line, step="over", reason="server-1 is away"))
    assert "server-1 is away" in told(move(line, step="over", reason="server-1 is away"))


# --- what came of it


def hot_key(**given: Any) -> HotKey:
    known: dict[str, Any] = {
        "helped_s": 6.04,
        "released_s": 25.0,
        "spread_per_s": {"server-3": 60.0, "server-1": 40.0},
        "busy": {"server-3": 0.8, "server-1": 0.7},
        "accounts": {"billing": Account({1, 2}, Counter([1, 2]))},
    }
    return HotKey(**known | given)


def test_rates_are_those_between_two_looks() -> None:
    counts = {"a": 150, "b": 30, "c": 9}
    assert rates_per_s({"a": 100, "b": 30}, counts, 2.0) == {"a": 25.0, "b": 0.0}


def test_the_hot_key_is_good_only_if_help_came_load_spread_and_the_helpers_left() -> None:
    assert hot_key().is_good
    assert hot_key().share == {"server-3": 0.6, "server-1": 0.4}
    assert not hot_key(helped_s=None).is_good
    assert not hot_key(released_s=None).is_good
    assert not hot_key(spread_per_s={"server-3": 100.0, "server-1": 0.0}).is_good
    assert not hot_key(spread_per_s={}).is_good


@pytest.mark.parametrize("wrong", [[1], [1, 2, 2], [1, 2, 3]])
def test_what_is_wrong_with_the_hot_key_is_wrong_with_the_demo(wrong: list[int]) -> None:
    hot = hot_key(accounts={"billing": Account({1, 2}, Counter(wrong))})
    outcome = Outcome(recovered=True, hot_key=hot)
    assert not hot.is_good and not outcome.is_good
    summary, own = outcome.summary(), hot.summary()
    for field in ("missed", "repeated", "unexpected"):
        assert summary[field] == own[field]
    assert Outcome(recovered=True, hot_key=hot_key()).is_good


def test_the_summary_of_the_hot_key_has_the_fields_programs_read() -> None:
    said = hot_key(emitted=2).summary()
    wanted = (
        "before after released moves helped_s released_s emitted expected missed repeated share"
    )
    assert set(wanted.split()) <= set(said)
    assert (said["helped_s"], said["emitted"], said["expected"]) == (6.0, 2, 2)
    assert hot_key(helped_s=None).summary()["helped_s"] is None
