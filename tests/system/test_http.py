"""The HTTP door, from outside: the verbs, bad input, slow clients, readers that come back."""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import utuple
from tests.system.cluster import Cluster, running_cluster
from tests.system.http_door import HttpDoor, door_before
from tests.waiting import until

pytestmark = pytest.mark.slow

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--servers", "2", "--managers", "1", "--no-monitor") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def door(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDoor]:
    folder = tmp_path_factory.mktemp("door")
    data = ("--data", str(cluster.folder))
    with door_before(cluster, folder, *data, "--stalled-s", "2", "--unacknowledged", "40") as door:
        yield door


def event(family: str, address: str = "a", **more: Any) -> dict[str, Any]:
    return {"subject": family, "type": "t", "address": address, "data": {"n": 1}, **more}


def of(family: str, **more: Any) -> dict[str, Any]:
    return {"subject": family, "type": "t", **more}


def lines(*events: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in events)


# --- events ----------------------------------------------------------------------------------------


def test_an_event_that_was_answered_202_is_read_in_every_format(door: HttpDoor) -> None:
    said = event("formats", "ü<script>", position=[35.5, 139.5], data={"kg": 12.5, "b": "x,y\n"})
    answer = door.post("/v1/events", said)
    assert (answer.status, answer.json()["registered"]) == (202, 1)
    (one,) = door.get("/v1/events", of("formats")).json()["events"]
    assert {name: one[name] for name in said} == said
    by_line = door.get("/v1/events", of("formats"), Accept=NDJSON)
    assert json.loads(by_line.body) == one
    table = door.get("/v1/events", of("formats"), Accept="text/csv;q=0.9, image/png")
    (row,) = csv.DictReader(io.StringIO(table.body.decode(), newline=""))
    assert (row["address"], row["lat"], json.loads(row["data"])) == (
        "ü<script>",
        "35.5",
        said["data"],
    )
    arrow = door.get("/v1/events", of("formats"), Accept=ARROW)
    (found,) = pa.ipc.open_stream(arrow.body).read_all().to_pylist()
    assert (found["id"], found["lon"], found["address"]) == (one["id"], 139.5, "ü<script>")


def test_a_template_in_query_parameters_is_the_command_line_s(door: HttpDoor) -> None:
    for number in range(10):
        said = event("asked", f"x-{number}", position=[number, 0], data={"kg": number})
        assert door.post("/v1/events", said).status == 202

    def found(**more: Any) -> list[str]:
        answer = door.get("/v1/events", of("asked", **more))
        assert answer.status == 200, answer.body
        return sorted(one["address"] for one in answer.json()["events"])

    assert found(where=["kg>=3 kg<5"]) == ["x-3", "x-4"]
    assert found(address=["x-1", "x-2"]) == ["x-1", "x-2"]
    assert found(prefix="x-9") == ["x-9"]
    assert found(area="2.5,-1,4.5,1") == ["x-3", "x-4"]
    assert found(area="3,0,1km") == ["x-3"]
    assert found(limit=1, newest="true") == ["x-9"]
    assert found(until="1h") == []


def test_many_come_in_as_lines_and_the_wrong_ones_are_named_by_their_row(door: HttpDoor) -> None:
    rows = [event("many", f"m-{n}") for n in range(3_000)]
    rows[1] = event("many", lifetime_s=-1)
    rows[2_500] = event("many", unknown=1)
    body = lines(*rows) + b"\n{not json\n" + lines(event("many", position=[91, 0]))
    answer = door.post("/v1/events", body, Content_Type=NDJSON)
    said = answer.json()
    assert (answer.status, said["registered"], said["refused"]) == (202, 2_998, 4)
    refused = [(one["row"], one["field"]) for one in said["refusals"]]
    assert refused == [
        (2, "lifetime_s"),
        (2_501, "unknown"),
        (3_002, "line"),
        (3_003, "position.latitude"),
    ]
    stored = door.get("/v1/events", of("many"), Accept=NDJSON).body.splitlines()
    assert len(stored) == 2_998
    all_wrong = door.post("/v1/events", lines(event("many", address="")), Content_Type=NDJSON)
    assert (all_wrong.status, all_wrong.json()["refusals"][0]["row"]) == (400, 1)


def test_counts_of_calls_that_ran_at_once_add_up(door: HttpDoor) -> None:
    body = lines(*(event("counted", f"m-{n % 100}", lifetime_s=60) for n in range(40_000)))
    answer = door.post("/v1/events", body, Content_Type=NDJSON)
    assert answer.json() == {"registered": 40_000, "refused": 0, "refusals": []}


def test_a_body_that_comes_in_pieces_is_registered_while_it_comes(door: HttpDoor) -> None:
    with socket.create_connection(("127.0.0.1", door.port)) as sock:
        head = f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {NDJSON}\r\n"
        sock.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
        first = lines(event("pieces", "one"))
        sock.sendall(f"{len(first):x}\r\n".encode() + first + b"\r\n")
        until(
            lambda: len(door.get("/v1/events", of("pieces")).json()["events"]) == 1,
            "the first row is stored while the body is open",
        )
        second = lines(event("pieces", "two"))
        sock.sendall(f"{len(second):x}\r\n".encode() + second + b"\r\n0\r\n\r\n")
        answer = b""
        while b"}" not in answer:
            answer += sock.recv(65_536)
    assert b" 202 " in answer.splitlines()[0]
    assert b'"registered":2' in answer


@pytest.mark.parametrize(
    ("body", "headers", "status", "field"),
    [
        (b"{", {}, 400, "body"),
        (b"[]", {}, 400, "body"),
        (event("bad", colour="red"), {}, 400, "colour"),
        (event("bad", lifetime_s=-1), {}, 400, "lifetime_s"),
        (event("bad", position=[91, 0]), {}, 400, "position.latitude"),
        (event("bad", time="yesterday"), {}, 400, "time"),
        (event("bad", data={"x": "y" * (3 << 20)}), {}, 413, "body"),
        (b"a=b", {"Content_Type": "text/plain"}, 415, "Content-Type"),
        (b"x" * (3 << 20), {"Content_Type": NDJSON}, 413, "row 1"),
    ],
)
def test_what_is_wrong_is_refused_with_field_value_and_rule(
    door: HttpDoor, body: Any, headers: dict[str, str], status: int, field: str
) -> None:
    answer = door.post("/v1/events", body, **headers)
    said = answer.json()
    assert (answer.status, said["field"]) == (status, field)
    assert "value" in said and said["rule"]
    assert answer.headers["content-type"] == "application/problem+json"
    assert door.get("/v1/events", of("bad")).json() == {"events": []}


@pytest.mark.parametrize(
    ("path", "query", "headers", "status"),
    [
        ("/v1/events", {"subject": "x"}, {}, 400),
        ("/v1/events", of("x", colour="red"), {}, 400),
        ("/v1/events", of("x", limit="-1"), {}, 400),
        ("/v1/events", of("x"), {"Accept": "image/png"}, 406),
        ("/v1/events/live", of("x", area="1,2"), {}, 400),
        ("/v1/events/live", of("x", reader=""), {}, 400),
        ("/v1/events/live", of("x"), {"Last_Event_ID": "1-2"}, 400),
        ("/v1/commands/none", {}, {}, 404),
        ("/v2", {}, {}, 404),
        ("/v1/status", {}, {"Origin": "http://evil.example"}, 403),
        ("/v1/status", {}, {"Host": "evil.example"}, 403),
        ("/v1/status", {}, {"Sec_Fetch_Site": "cross-site"}, 403),
    ],
)
def test_a_wrong_question_has_a_clear_answer(
    door: HttpDoor, path: str, query: Any, headers: dict[str, str], status: int
) -> None:
    answer = door.get(path, query, **headers)
    assert (answer.status, answer.json()["status"]) == (status, status)
    assert answer.headers["content-security-policy"].startswith(
        "default-src 'none'; script-src 'self';"
    )


# --- live ------------------------------------------------------------------------------------------


def test_stored_events_come_first_then_live_ones(door: HttpDoor) -> None:
    door.post("/v1/events", event("live", "stored"))
    with door.events("/v1/events/live", of("live")) as source:
        (first,) = source.take(1)
        door.post("/v1/events", event("live", "now"))
        (second,) = source.take(1)
    assert [(one.data["address"], one.data["stored"]) for one in (first, second)] == [
        ("stored", True),
        ("now", False),
    ]


def test_a_named_reader_goes_on_after_the_event_it_names(door: HttpDoor) -> None:
    for number in range(6):
        door.post("/v1/events", event("resume", str(number)))
    asked = of("resume", reader="resumer")
    with door.events("/v1/events/live", asked) as source:
        got = source.take(5)
    with door.events("/v1/events/live", asked, Last_Event_ID=got[2].id) as source:
        again = source.take(3)
    first = [one.data["address"] for one in got]
    assert [one.data["address"] for one in again] == [
        *first[3:],
        *({str(n) for n in range(6)} - {*first}),
    ]
    with door.events("/v1/events/live", asked) as source:  # nothing said: all unacknowledged ones
        assert [one.data["address"] for one in source.take(3)] == [
            one.data["address"] for one in again
        ]


def test_an_id_of_another_reader_is_refused(door: HttpDoor) -> None:
    door.post("/v1/events", event("others"))
    with door.events("/v1/events/live", of("others", reader="one")) as source:
        (got,) = source.take(1)
    with door.events("/v1/events/live", of("others", reader="two"), Last_Event_ID=got.id) as other:
        assert (other.status, other.problem()["field"]) == (400, "Last-Event-ID")


def test_a_stream_ends_for_its_reader_to_come_back_and_say_how_far_it_is(door: HttpDoor) -> None:
    for number in range(100):
        door.post("/v1/events", event("turns", str(number)))
    asked, got = of("turns", reader="turner"), list[str]()
    last: dict[str, str] = {}
    for _ in range(5):
        with door.events("/v1/events/live", asked, **last) as source:
            events = source.take(100 - len(got))
        assert len(events) == min(40, 100 - len(got))
        got += [one.data["address"] for one in events]
        last = {"Last_Event_ID": events[-1].id}
        if len(got) == 100:
            break
    assert sorted(got, key=int) == [str(n) for n in range(100)]


def test_a_reader_can_acknowledge_without_coming_back(door: HttpDoor) -> None:
    for number in range(3):
        door.post("/v1/events", event("acked", str(number)))
    asked = of("acked", reader="acker")
    with door.events("/v1/events/live", asked) as source:
        got = source.take(3)
        assert door.post("/v1/readers/acker/ack", {"id": got[1].id}).status == 204
        tag, never = got[1].id.partition("-")[0], uuid4().hex
        for wrong in (got[1].id, got[0].id, f"{tag}-{never}"):  # twice, before it, never sent
            said = door.post("/v1/readers/acker/ack", {"id": wrong})
            assert said.status == 400 and "acknowledged already" in said.json()["detail"]
    with door.events("/v1/events/live", asked) as source:
        assert [one.data["id"] for one in source.take(1)] == [got[2].data["id"]]


def test_a_reader_finds_at_another_door_what_it_had_not_acknowledged(
    door: HttpDoor, cluster: Cluster, tmp_path: Path
) -> None:
    for number in range(3):
        door.post("/v1/events", event("moved", str(number)))
    asked = of("moved", reader="mover")
    first = HttpDoor(cluster, tmp_path / "first.log")
    try:
        with first.events("/v1/events/live", asked) as source:
            got = source.take(2)
    finally:
        first.kill()
    with door.events("/v1/events/live", asked, Last_Event_ID=got[1].id) as source:
        again = source.take(3)
    assert {one.data["id"] for one in again} >= {one.data["id"] for one in got}


def test_a_client_that_stops_reading_is_dropped_and_told_when_it_comes_back(door: HttpDoor) -> None:
    big = [event("slow", str(n), data={"x": "y" * 400_000}) for n in range(40)]
    assert door.post("/v1/events", lines(*big), Content_Type=NDJSON).status == 202
    path = "/v1/events/live?subject=slow&type=t&reader=slow"
    with socket.create_connection(("127.0.0.1", door.port)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        until(lambda: b"http_dropped 1.0" in door.get("/metrics").body, "it is dropped")
    with door.events("/v1/events/live", of("slow", reader="slow")) as source:
        (notice, *again) = source.take(41)
    assert (notice.name, notice.data["title"]) == ("notice", "Dropped")
    assert {one.data["address"] for one in again} == {str(n) for n in range(40)}


# --- commands --------------------------------------------------------------------------------------


def test_a_device_gets_its_commands_and_the_sender_a_receipt(door: HttpDoor) -> None:
    path = "/v1/devices/aircon/power/room%20101/commands"
    with door.events(path, {"position": "35.68,139.76", "where": "on is bool"}) as device:
        assert device.status == 200
        got: list[Any] = []
        taking = threading.Thread(target=lambda: got.extend(device.take(2)))
        taking.start()
        to_one = {"subject": "aircon", "type": "power", "data": {"on": False}}
        answer = door.post("/v1/commands", {**to_one, "address": "room 101"})
        receipt = answer.json()
        assert (answer.status, receipt["handed_over"]) == (200, 1)
        area = door.post("/v1/commands", {**to_one, "area": "35.68,139.76,500m"}).json()
        (got_it,) = area["devices"]
        assert got_it == {
            "address": "room 101",
            "handed_over": True,
            "acknowledged": False,
            "reason": "",
        }
        taking.join(30)
    assert [one.data["data"] for one in got] == [{"on": False}, {"on": False}]
    assert door.get(f"/v1/commands/{receipt['id']}").json() == receipt
    nobody = door.post("/v1/commands", {**to_one, "address": "nowhere"})
    assert (nobody.status, nobody.json()["matched"]) == (200, 0)
    wrong = door.post("/v1/commands", to_one)
    assert (wrong.status, wrong.json()["field"]) == (400, "everywhere")


def test_a_command_that_waits_is_followed_at_any_door_also_after_a_restart(
    door: HttpDoor, cluster: Cluster, tmp_path: Path
) -> None:
    said = {"subject": "lamp", "type": "power", "data": {"on": True}, "lifetime_s": 60}
    log = tmp_path / "first.log"
    first = HttpDoor(cluster, log)
    try:
        sent = first.post("/v1/commands", {**said, "area": "10,10,1km"})
        assert (sent.status, sent.json()["matched"]) == (200, 0)
        where = sent.headers["location"]
        assert (first.get(where).json()["matched"], door.get(where).json()["matched"]) == (0, 0)

        def handed_over(by: HttpDoor) -> bool:
            return [one["handed_over"] for one in by.get(where).json()["devices"]] == [True]

        place = "/v1/devices/lamp/power/late/commands"
        with door.events(place, {"position": "10,10"}) as late:
            assert [one.data["data"] for one in late.take(1)] == [{"on": True}]
            until(lambda: handed_over(first), "the door that sent it follows")
            until(lambda: handed_over(door), "so does the other")
            first.kill()
            first = HttpDoor(cluster, log, port=first.port)
            assert handed_over(first)
        assert first.get(where).json()["id"] == sent.json()["id"]
    finally:
        first.kill()
    unknown = door.get("/v1/commands/00000000-0000-4000-8000-000000000000")
    assert (unknown.status, "lifetime is over" in unknown.json()["detail"]) == (404, True)


def test_events_tell_of_a_device_that_never_got_its_command(
    door: HttpDoor, cluster: Cluster
) -> None:
    family: dict[str, Any] = {"subject": "heater", "type": "power"}

    async def come_and_go() -> None:
        async with (
            utuple.connect(cluster.at) as space,
            space.serve(**family, address="attic", reader="attic"),
        ):
            pass

    asyncio.run(come_and_go())
    to_all = {**family, "data": {"on": True}, "everywhere": True, "notify": "expired"}
    wrong = door.post("/v1/commands", to_all)
    assert (wrong.status, wrong.json()["field"]) == (400, "notify"), "it waits for nobody"
    sent = door.post("/v1/commands", {**to_all, "lifetime_s": 5}).json()
    asked = {**family, "where": "expired=true"}

    def told() -> list[Any]:
        return [one["data"] for one in door.get("/v1/events", asked).json()["events"]]

    until(told, "the device that was away is told of")
    assert told() == [{"command": sent["id"], "expired": True}]


# --- operators -------------------------------------------------------------------------------------


def test_operators_look_at_the_cluster_and_give_orders(door: HttpDoor, cluster: Cluster) -> None:
    assert door.get("/v1/status").json()["well"] is True
    assert len(door.get("/v1/table").json()["lines"]) == 2
    assert [one["name"] for one in door.get("/v1/servers").json()["servers"]] == [
        "server-1",
        "server-2",
    ]
    assert b"utuple_well 1.0" in door.get("/metrics").body
    assert (door.get("/healthz").status, door.get("/readyz").status) == (200, 200)
    tried = door.post("/v1/servers/server-1/help", {"dry_run": True})
    assert (tried.status, tried.json()["helper"]) == (200, "server-2")
    assert door.get("/v1/moves").json() == {"moves": []}
    ordered = door.post("/v1/servers/server-1/help", {})
    assert ordered.status == 202
    until(
        lambda: [m["step"] for m in door.get("/v1/moves").json()["moves"]] == ["done"],
        "the help is made",
    )
    assert len(door.get("/v1/table").json()["lines"][0]["members"]) == 2
    for order, status in (
        ("/v1/servers/nobody/help", 400),
        ("/v1/servers/server-1/drain", 409),  # no load monitor
    ):
        assert door.post(order, {}).status == status
    assert door.post("/v1/servers", {"dry_run": True}).json()["name"] == "server-3"


def test_a_reader_is_forgotten_unless_it_is_connected(door: HttpDoor) -> None:
    with door.events("/v1/events/live", of("forgotten", reader="leaver")):
        assert door.ask("DELETE", "/v1/readers/leaver").status == 409
    until(
        lambda: door.ask("DELETE", "/v1/readers/leaver").status == 200, "its end has been noticed"
    )
    known = [one["reader"] for one in door.get("/v1/readers").json()["readers"]]
    assert "leaver" not in known


def test_pages_share_one_observer_and_are_sent_what_changes(door: HttpDoor) -> None:
    with door.events("/v1/status/live", {}) as page, door.events("/v1/status/live", {}) as other:
        for source in (page, other):
            names = {one.name for one in source.take(8)}
            assert {"servers", "lines", "summary"} <= names
        until(lambda: b"http_pages 2.0" in door.get("/metrics").body, "both are counted")


def test_three_hundred_pages_leave_room_for_others(door: HttpDoor) -> None:
    with crowd(door, b"GET /v1/status/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 300):
        until(lambda: b"http_pages 300.0" in door.get("/metrics").body, "all are open")
        assert door.post("/v1/events", event("crowd")).status == 202
    until(lambda: b"http_pages 0.0" in door.get("/metrics").body, "all have gone")


@contextmanager
def crowd(door: HttpDoor, said: bytes, many: int) -> Iterator[list[socket.socket]]:
    """So many connections that say this, and then wait."""
    with ExitStack() as stack:
        sockets = []
        for _ in range(many):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", door.port)))
            sock.settimeout(60)
            sock.sendall(said)
            sockets.append(sock)
        yield sockets


@pytest.fixture(scope="module")
def strict(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDoor]:
    """With little patience and little room."""
    few = ("--streams", "1", "--request-s", "2", "--head-bytes", "8192")
    with door_before(cluster, tmp_path_factory.mktemp("strict"), *few) as door:
        yield door


def received(sock: socket.socket, end: bytes) -> bytes:
    """An answer may come in pieces."""
    got = b""
    while not got.endswith(end):
        piece = sock.recv(65_536)
        assert piece, got
        got += piece
    return got


BEGUN = b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-"


def test_a_thousand_connections_that_say_half_a_request_are_told_and_closed(
    strict: HttpDoor,
) -> None:
    with crowd(strict, BEGUN, 1_000) as sockets:
        assert strict.post("/v1/events", event("slow")).status == 202, "others are served"
        for sock in sockets:
            assert b" 408 " in sock.recv(65_536).splitlines()[0]
            assert sock.recv(1) == b"", "closed by the door"


def test_a_second_request_may_be_no_slower_than_the_first(strict: HttpDoor) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b" 200 " in received(sock, b"ok\n").splitlines()[0]
        sock.sendall(BEGUN)
        assert b" 408 " in sock.recv(65_536).splitlines()[0]


def test_a_head_without_end_is_refused_before_it_is_collected(strict: HttpDoor) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: " + b"y" * 8_192)
        assert b" 431 " in sock.recv(65_536).splitlines()[0]
    whole = strict.get("/healthz", X_Long="y" * 7_000)
    assert whole.status == 200, "one that is as large as it may be is taken"


POST = b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"FETCH /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50), 400),
        (b"GET /?" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 431),
        (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
    ids=("method", "tls", "address", "lengths", "chunk"),
)
def test_what_is_no_http_is_answered_as_a_problem(
    strict: HttpDoor, said: bytes, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as sock:
        sock.sendall(said)
        answer = b"".join(iter(lambda: sock.recv(65_536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == status and json.loads(body)["detail"]


def test_what_is_no_http_after_a_request_does_not_break_its_answer(strict: HttpDoor) -> None:
    ask = b"GET /v1/status/live?timeout=0.5 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as sock:
        sock.sendall(ask)
        answer = sock.recv(65_536)
        sock.sendall(b"FETCH\r\n\r\n")
        answer += b"".join(iter(lambda: sock.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.count(b"HTTP/1.1") == 1
    until(lambda: b"http_streams 0.0" in strict.get("/metrics").body, "its stream has gone")


def test_the_head_of_a_stream_is_whole_and_its_connection_goes_on(door: HttpDoor) -> None:
    ask = b" /v1/events/live?subject=s&type=t HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", door.port), timeout=60) as sock:
        sock.sendall(b"HEAD" + ask)
        assert b"text/event-stream" in received(sock, b"\r\n\r\n")
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert received(sock, b"ok\n").startswith(b"HTTP/1.1 200 ")


def test_a_packed_body_is_refused_and_not_taken_for_another(door: HttpDoor) -> None:
    answer = door.post("/v1/events", gzip.compress(b"{}"), Content_Encoding="gzip")
    assert (answer.status, answer.json()["field"]) == (415, "Content-Encoding")


def test_addresses_and_readers_may_have_slashes(door: HttpDoor) -> None:
    with door.events("/v1/devices/lamp/power/floor%201%2Froom%202/commands", {}) as lamp:
        assert lamp.status == 200
        said = {"subject": "lamp", "type": "power", "address": "floor 1/room 2", "data": {}}
        taking = threading.Thread(target=lambda: lamp.take(1))
        taking.start()
        assert door.post("/v1/commands", said).json()["handed_over"] == 1
        taking.join(30)
    for number in range(2):
        door.post("/v1/events", event("slashed", str(number)))
    with door.events("/v1/events/live", of("slashed", reader="a/b")) as source:
        first, _ = source.take(2)
        assert door.post("/v1/readers/a%2Fb/ack", {"id": first.id}).status == 204
    until(lambda: not _reader_connected(door, "a/b"), "it has gone")
    assert door.ask("DELETE", "/v1/readers/a%2Fb").json()["forgotten"]
    assert door.ask("DELETE", "/v1/readers/").status == 400
    assert door.get("/v1/status/").status == 404


def _reader_connected(door: HttpDoor, name: str) -> bool:
    rows = door.get("/v1/readers").json()["readers"]
    return any(one["connected"] for one in rows if one["reader"] == name)


def test_too_many_streams_and_silent_connections_are_refused(strict: HttpDoor) -> None:
    with (
        strict.events("/v1/status/live", {}) as first,
        strict.events("/v1/status/live", {}) as more,
    ):
        assert (first.status, more.status) == (200, 503)
        assert more.problem()["title"] == "Too many streams"
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as silent:
        assert silent.recv(1) == b""  # closed by the door


def test_while_the_cluster_is_away_the_door_says_so(tmp_path: Path) -> None:
    with running_cluster("--servers", "1", "--managers", "1", "--no-monitor") as own:
        with door_before(own, tmp_path) as door:
            own.run("down")
            answer = door.get("/v1/status")
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert door.get("/readyz").status == 503
            assert door.get("/healthz").status == 200


def test_a_door_that_cannot_listen_says_why(
    cluster: Cluster, door: HttpDoor, tmp_path: Path
) -> None:
    import subprocess
    import sys

    taken = f"127.0.0.1:{door.port}"
    command = [sys.executable, "-m", "utuple.doors.http", "--at", cluster.at, "--listen"]
    for listen, said in ((taken, "cannot listen"), ("0.0.0.0:1", "not on loopback")):
        ran = subprocess.run([*command, listen], capture_output=True, text=True, check=False)
        assert ran.returncode != 0
        assert said in ran.stderr
