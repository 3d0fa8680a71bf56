"""Eclipse's interoperability cases, by their names, at the door; and beside mosquitto: the door passes whatever that one does."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.rivals.catalogue import MOSQUITTO
from tests.system.cluster import ended, free_port, running_cluster
from tests.system.mqtt_cases import CASES_5, CASES_311, Case, Ground
from tests.system.mqtt_door import door_before
from tests.system.mqtt_wire import Gone, Wire
from tests.waiting import until
from utuple.doors.mqtt.codec.packets import V5, V311

pytestmark = pytest.mark.long
ALL = [(version, case) for version, cases in ((V311, CASES_311), (V5, CASES_5)) for case in cases]
IDS = [f"{'5' if version == V5 else '3.1.1'}-{case.__name__}" for version, case in ALL]
REFUSED_BY_DOOR = "cmd/+/power/room-101"
SAID_MORE_PRECISELY = {(V5, "subscribe_failure")}
"""Eclipse's case wants 0x80 (Unspecified error); the door says 0x8F (Topic filter invalid) where version 5 has a word for it."""
FAILURES = (AssertionError, TimeoutError, Gone, KeyError, OSError)


@pytest.fixture(scope="module")
def door_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with (
        running_cluster("--servers", "2") as cluster,
        door_before(cluster, tmp_path_factory.mktemp("door")) as door,
    ):
        yield door.port


def ground(port: int, version: int) -> Ground:
    return Ground(port, version, uuid4().hex[:8], REFUSED_BY_DOOR)


@pytest.mark.parametrize(("version", "case"), ALL, ids=IDS)
def test_eclipse_case(door_port: int, version: int, case: Case) -> None:
    if (version, case.__name__) in SAID_MORE_PRECISELY:
        pytest.skip("the door's reason is another one")
    case(ground(door_port, version))


def test_the_door_passes_whatever_mosquitto_passes(door_port: int, tmp_path: Path) -> None:
    """And a table of both, for who runs it with -s."""
    program = MOSQUITTO.path
    if program is None:
        pytest.skip("mosquitto is not installed")
    port = free_port()
    with ended(subprocess.Popen(MOSQUITTO.command(program, port, tmp_path))):
        until(lambda: _listens(port), "mosquitto listens")
        behind = []
        for (version, case), id_ in zip(ALL, IDS, strict=True):
            ours, theirs = _passes(case, door_port, version), _passes(case, port, version)
            print(f"{id_:32} door {'passes' if ours else 'FAILS':7} mosquitto {theirs}")
            if theirs and not ours:
                behind.append(id_)
    assert behind == []


def _passes(case: Case, port: int, version: int) -> bool:
    try:
        case(ground(port, version))
    except FAILURES:
        return False
    return True


def _listens(port: int) -> bool:
    try:
        Wire(port).close()
    except OSError:
        return False
    return True
