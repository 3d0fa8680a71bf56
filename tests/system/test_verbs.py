"""The verbs of the command line against a real cluster: JSON lines in, JSON lines out."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.cluster import COMMAND_LIMIT_S, Cluster, running_cluster
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "2", "--managers", "1") as cluster:
        yield cluster


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> list[str]:
    """A family of its own for every test."""
    return ["--subject", "truck", "--type", request.function.__name__]


def emit(cluster: Cluster, kind: list[str], *loads: int) -> None:
    events = [{"address": f"truck-{kg}", "data": {"kg": kg}} for kg in loads]
    done = cluster.run("emit", *kind, stdin="".join(json.dumps(event) + "\n" for event in events))
    assert done.code == 0, done.err


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def loads(text: str) -> list[int]:
    return [line["data"]["kg"] for line in lines(text)]


def test_good_lines_are_registered_and_bad_ones_named(cluster: Cluster, kind: list[str]) -> None:
    text = '{"address": "a", "data": {"kg": 1}}\nnonsense\n\n{"address": "", "data": {}}\n'
    text += '{"address": "b", "data": {"kg": 2}, "position": [91, 0]}\n{"address": "c", "data": {"kg": 3}}'
    done = cluster.run("emit", *kind, "--json", stdin=text)
    assert done.code == 1
    said = done.json()
    assert (said["emitted"], said["refused"]) == (2, 3)
    assert [(c["line"], c["field"]) for c in said["complaints"]] == [
        (2, "line"),
        (4, "address"),
        (5, "position.latitude"),
    ]
    assert "line 5: position.latitude: 91 is refused" in done.err
    assert loads(cluster.run("read", *kind).out) == [1, 3]


def test_an_emit_that_is_interrupted_says_what_is_registered(
    cluster: Cluster, kind: list[str]
) -> None:
    """Law 4: whoever presses Ctrl-C is told, too."""
    emitting = cluster.start("emit", *kind)
    assert emitting.stdin is not None
    emitting.stdin.write('{"address": "a", "data": {"kg": 1}}\nnonsense\n')
    emitting.stdin.flush()
    while not loads(cluster.run("read", *kind).out):
        continue
    emitting.send_signal(signal.SIGINT)
    _, said = emitting.communicate(timeout=60)
    assert emitting.returncode == 130
    assert "interrupted: 1 emitted, 1 refused" in said or "may not all be registered" in said


def test_one_event_comes_from_options(cluster: Cluster, kind: list[str]) -> None:
    where = [
        "--address",
        "truck-17",
        "--position",
        "35.68,139.76",
        "--time",
        "2026-01-31T08:00:00Z",
    ]
    assert cluster.run("emit", *kind, *where, "--data", '{"kg": 5}', "--lifetime", "1h").code == 0
    (event,) = lines(cluster.run("read", *kind).out)
    assert event["id"] and event["stored"] is True
    assert event["address"] == "truck-17" and event["position"] == [35.68, 139.76]
    assert event["time"] == "2026-01-31T08:00:00Z" and event["data"] == {"kg": 5}


def test_read_asks_as_people_write(cluster: Cluster, kind: list[str]) -> None:
    emit(cluster, kind, 1, 10, 100)
    assert loads(cluster.run("read", *kind, "--where", "kg>=5 kg<50").out) == [10]
    assert sorted(loads(cluster.run("read", *kind, "--prefix", "truck-10").out)) == [10, 100]
    assert loads(cluster.run("read", *kind, "--address", "truck-1", "--since", "1h").out) == [1]
    assert loads(cluster.run("read", *kind, "--until", "1h").out) == []
    assert loads(cluster.run("read", *kind, "--area", "0,0,500m").out) == []
    assert loads(cluster.run("read", *kind, "--limit", "2").out) == [1, 10]
    assert loads(cluster.run("read", *kind, "--limit", "2", "--newest").out) == [100, 10]
    assert loads(cluster.run("read", *kind, "--newest").out) == [100, 10, 1]


def test_watch_prints_the_stored_then_the_live_at_once(cluster: Cluster, kind: list[str]) -> None:
    emit(cluster, kind, 1)
    watch = cluster.start("watch", *kind)
    assert watch.stdout is not None
    first = json.loads(watch.stdout.readline())
    emit(cluster, kind, 2)
    second = json.loads(watch.stdout.readline())
    assert [(e["data"]["kg"], e["stored"]) for e in (first, second)] == [(1, True), (2, False)]
    watch.send_signal(signal.SIGINT)
    _, err = watch.communicate(timeout=COMMAND_LIMIT_S)
    assert (watch.returncode, err) == (130, "")


def test_a_named_reader_goes_on_where_it_was(cluster: Cluster, kind: list[str]) -> None:
    emit(cluster, kind, 1, 2, 3)
    named = ["watch", *kind, "--reader", "dispatch", "--timeout", "30"]
    first = loads(cluster.run(*named, "--limit", "2").out)
    emit(cluster, kind, 4)
    second = loads(cluster.run(*named, "--limit", "2").out)
    assert sorted(first + second) == [1, 2, 3, 4]


def test_what_was_dropped_while_a_reader_was_away_is_a_json_line_on_standard_error(
    cluster: Cluster, kind: list[str]
) -> None:
    named = ["watch", *kind, "--reader", "dropper", "--absent", "newest:2", "--timeout", "30"]
    emit(cluster, kind, 1)
    assert loads(cluster.run(*named, "--limit", "1").out) == [1]
    emit(cluster, kind, 2, 3, 4, 5)
    back = cluster.run(*named, "--limit", "2")
    assert loads(back.out) == [4, 5]
    (line,) = back.err.splitlines()
    said = json.loads(line)
    assert (said["dropped"], said["policy"], said["zeta"]) == (2, "newest(2)", None)
    assert said["since"] < said["until"] and said["read"].startswith("space.read(subject=")


def test_short_of_its_limit_a_watch_ends_with_exit_code_1(
    cluster: Cluster, kind: list[str]
) -> None:
    done = cluster.run("watch", *kind, "--limit", "1", "--timeout", "5")
    assert done.code == 1 and "0 of 1" in done.err


def test_a_reader_of_the_pipe_that_leaves_is_no_error(cluster: Cluster, kind: list[str]) -> None:
    emit(cluster, kind, *range(2_000))
    read = cluster.start("read", *kind)
    assert read.stdout is not None and read.stderr is not None
    assert read.stdout.readline()
    read.stdout.close()
    assert read.wait(COMMAND_LIMIT_S) == 0
    assert read.stderr.read() == ""


def test_emit_takes_lines_as_they_come(cluster: Cluster, kind: list[str]) -> None:
    """As from `tail -f`: nothing waits for the end of the input."""
    emitting = cluster.start("emit", *kind)
    assert emitting.stdin is not None
    emitting.stdin.write('{"address": "a", "data": {"kg": 7}}\n')
    emitting.stdin.flush()
    until(lambda: loads(cluster.run("read", *kind).out) == [7], "the event is there")
    assert emitting.poll() is None
    emitting.send_signal(signal.SIGINT)
    assert emitting.wait(COMMAND_LIMIT_S) == 130


# --- devices


def test_commands_reach_one_device_and_all_in_a_place(cluster: Cluster, kind: list[str]) -> None:
    where = ["--position", "35.68,139.76", "--where", "on is bool"]
    devices = [
        cluster.start("serve", *kind, "--address", address, *where)
        for address in ("room-1", "room-2")
    ]

    def is_taken_by(address: str) -> bool:
        one = ["command", *kind, "--address", address, "--data", '{"on": true}']
        return cluster.run(*one).code == 0

    for address in ("room-1", "room-2"):
        until(lambda address=address: is_taken_by(address), f"{address} takes commands")  # type: ignore[misc]
    area = ["--area", "circle:35.68,139.76,500m", "--data", '{"on": false}', "--json"]
    receipt = cluster.run("command", *kind, *area)
    for device in devices:
        device.send_signal(signal.SIGINT)
    said = [device.communicate(timeout=COMMAND_LIMIT_S) for device in devices]
    assert receipt.code == 0, (receipt.err, said)
    assert (receipt.json()["matched"], receipt.json()["handed_over"]) == (2, 2)
    for out, err in said:
        assert err == ""
        on = [line["data"]["on"] for line in lines(out)]
        assert set(on[:-1]) == {True} and on[-1] is False


@pytest.mark.parametrize("place", [["--address", "room-9"], ["--area", "0,0,10"]])
def test_a_command_that_meets_no_device_fails_and_says_why(
    cluster: Cluster, place: list[str]
) -> None:
    kind = ["--subject", "aircon", "--type", "none"]
    done = cluster.run("command", *kind, *place, "--data", '{"on": true}')
    assert done.code == 1
    assert "no device matched" in done.err and "utuple serve" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_command_that_waits_for_devices_says_so_and_succeeds(cluster: Cluster) -> None:
    asked = ["command", "--subject", "aircon", "--type", "later", "--data", '{"on": true}']
    asked += ["--prefix", "room-", "--lifetime", "1m"]
    done = cluster.run(*asked)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("no device yet; waits 60 s: aircon/later at prefix('room-')")
    done = cluster.run(*asked, "--json")
    assert done.code == 0
    assert (done.json()["matched"], done.json()["waits_s"]) == (0, 60)


def test_a_command_to_every_device_is_refused_unless_it_is_said(cluster: Cluster) -> None:
    asked = ["command", "--subject", "aircon", "--type", "all", "--data", '{"on": true}']
    done = cluster.run(*asked)
    assert done.code == 1 and "--everywhere" in done.err and done.out == ""
    done = cluster.run(*asked, "--everywhere")
    assert done.code == 1 and "no device matched: aircon/all everywhere" in done.err
