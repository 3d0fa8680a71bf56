"""The cluster's figures for Prometheus: a snapshot in, text out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from utuple.admin.metrics import families_of
from utuple.admin.moves import ShownMove
from utuple.admin.programs import Load, Manager, Monitor, Sca, Server
from utuple.admin.readers import Reader
from utuple.admin.snapshot import Snapshot
from utuple.cli.metrics.command import Cluster


def server(name: str, state: str = "serving", readers: tuple[Reader, ...] = ()) -> Server:
    load = Load(busy=0.5, queued=3, arrival_per_s=10.0, service_per_s=20.0)
    return Server(name, state=state, load=load, registered=7, delivered=9, readers=readers)


class _Registered:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        return families_of(self._snapshot)


def text_of(snapshot: Snapshot) -> list[str]:
    registry = CollectorRegistry()
    registry.register(_Registered(snapshot))
    return generate_latest(registry).decode().splitlines()


def test_a_server_shows_its_load_as_gauges_and_its_work_as_counters() -> None:
    lines = text_of(Snapshot(True, [], [server("server-1")], [], []))
    assert 'utuple_server_busy{name="server-1"} 0.5' in lines
    assert 'utuple_server_registered_total{name="server-1"} 7.0' in lines
    assert "utuple_table_whole 1.0" in lines


def test_of_a_server_that_does_not_answer_only_that_is_told() -> None:
    lines = text_of(Snapshot(False, [], [server("server-1", "unreachable")], [], []))
    own = [line for line in lines if 'name="server-1"' in line]
    assert own == ['utuple_server_up{name="server-1"} 0.0']


def test_readers_lag_is_told_by_server_and_reader_and_unnamed_ones_are_not() -> None:
    readers = (Reader("dispatch", 2, True, 5), Reader("", 1, True, 1))
    lines = text_of(Snapshot(True, [], [server("s", readers=readers)], [], []))
    lags = [line for line in lines if line.startswith("utuple_reader_lag{")]
    assert lags == ['utuple_reader_lag{reader="dispatch",server="s"} 5.0']


def test_moves_are_counted_by_kind_and_step() -> None:
    split, drain = (
        ShownMove("1", kind="split", step="done"),
        ShownMove("2", kind="drain", step="learning"),
    )
    lines = text_of(Snapshot(True, moves=[split, split, drain]))
    assert 'utuple_moves{kind="split",step="done"} 2.0' in lines
    assert 'utuple_moves{kind="drain",step="learning"} 1.0' in lines


def test_a_cluster_that_is_gone_is_a_figure_for_who_scrapes() -> None:
    registry = CollectorRegistry()
    registry.register(Cluster(["127.0.0.1:1"], must_answer=False))
    assert "utuple_well 0.0" in generate_latest(registry).decode().splitlines()


ABBREVIATED = frozenset(
    "s ms us ns sec secs min h d b kb mb gb kib mib gib pct percent m km c".split()
)
KINDS = frozenset("gauge counter histogram summary".split())


def test_names_are_as_prometheus_wants_them() -> None:
    """What `promtool check metrics` looks for: counters and only they end in _total, whole words for units, no kind in a
    name, and help for everything."""
    snapshot = Snapshot(
        True,
        [],
        [server("s", readers=(Reader("r", 1, True, 5),))],
        [Sca("a", state="serving", commands=1, handed_over=1)],
        [Manager("m", state="serving", peers=1, kept=1)],
        [Monitor("w", state="watching", polls=1, accepted=1)],
        [ShownMove("1", kind="split", step="done")],
    )
    lines = text_of(snapshot)
    kinds = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE"))
    helped = {line.split()[2] for line in lines if line.startswith("# HELP") and line.split()[3:]}
    assert len(kinds) > 30 and helped == kinds.keys()
    for name, kind in kinds.items():
        words = name.split("_")
        assert re.fullmatch("utuple(_[a-z]+)+", name)
        assert (words[-1] == "total") == (kind == "counter"), name
        assert not {*words} & (ABBREVIATED | KINDS), name


def test_a_cluster_without_an_sca_server_is_not_well_and_without_a_monitor_it_is() -> None:
    servers = [server("s")]
    sca, monitor = [Sca("sca-1", state="serving")], [Monitor("monitor-1", state="watching")]
    assert Snapshot(True, [], servers, sca, [], monitor).is_well
    assert Snapshot(True, [], servers, sca, [], monitor).missing == []
    assert Snapshot(True, [], servers, sca, []).is_well
    [said] = Snapshot(True, [], servers, sca, []).missing
    assert "no load monitor" in said
    without = Snapshot(True, [], servers, [], [], monitor)
    assert not without.is_well
    [said] = without.missing
    assert "no sCA server" in said and "python -m sca_server" in said
