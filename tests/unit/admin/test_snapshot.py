"""What `--json` prints is read by others' programs: it stays byte for byte what it is."""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.unit.admin import messages as m
from utuple.admin.moves import move_of
from utuple.admin.programs import manager_of, monitor_of, sca_of, server_of, shown_line
from utuple.admin.snapshot import Snapshot

RECORDED = Path(__file__).with_name("snapshot.json")


def snapshot() -> Snapshot:
    return Snapshot(
        True,
        m.LINES,
        [
            server_of("server-1", "127.0.0.1:7411", m.SERVER, m.LINES),
            server_of("server-2", "", None, m.LINES),
        ],
        [sca_of(m.info("sca-1"), m.SCA), sca_of(m.info("sca-2"), None)],
        [manager_of(message) for message in m.MANAGERS],
        [monitor_of(m.info("monitor-1"), m.MONITOR), monitor_of(m.info("monitor-2"), None)],
        [move_of(record, "server-1", m.NOW_US) for record in m.RECORDS],
    )


def test_a_snapshot_prints_as_it_was_recorded() -> None:
    seen = snapshot()
    shown = {
        "lines": list(map(shown_line, seen.lines)),
        "servers": seen.servers,
        "sca": seen.scas,
        "managers": seen.managers,
        "monitors": seen.monitors,
        "moves": seen.moves,
    }
    assert orjson.dumps(shown, option=orjson.OPT_INDENT_2) + b"\n" == RECORDED.read_bytes()


def test_moves_under_way_are_those_that_have_not_ended() -> None:
    assert [move.id for move in snapshot().under_way] == ["02"]
