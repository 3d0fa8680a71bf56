"""The doors of a secured cluster: whoever comes in by HTTP or MQTT is judged as himself, by token or certificate."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.system.cluster import Cluster, free_port, running_cluster
from tests.system.mqtt_wire import Wire
from tests.waiting import until
from utuple.doors.mqtt.codec.packets import V5, V311, Property
from utuple.doors.mqtt.codec.reasons import Reason
from utuple.security.authority import new_authority
from utuple.security.credentials import read_credentials
from utuple.security.folder import AuthorityFolder
from utuple.security.identity import Identity, Role
from utuple.security.proofs import token_of

TRUCK = {"subject": "truck", "type": "load", "address": "truck-17", "data": {"kg": 1200}}
LIVE = "/v1/events/live?subject=truck&type=load"
READ = "/v1/events?subject=truck&type=load"


class Ground(NamedTuple):
    cluster: Cluster
    folder: Path
    port: int
    mqtt: int

    def granted(self, name: str, *arguments: str) -> Path:
        path = self.folder / f"{name}.creds"
        ran = self.cluster.run("grant", name, *arguments, "-o", str(path))
        assert ran.code == 0, ran.err
        return path

    def context(self, creds: Path | None = None) -> ssl.SSLContext:
        """Which checks that the door is the one that it was called by."""
        context = ssl.create_default_context()
        known = read_credentials(self.cluster.folder / "operator.creds")
        context.load_verify_locations(cadata="".join(known.authorities_pem))
        if creds is not None:
            context.load_cert_chain(creds)
        return context

    @contextmanager
    def wire(self, creds: Path | None = None, version: int = V5) -> Iterator[Wire]:
        wire = Wire(self.mqtt, version, self.context(creds))
        try:
            yield wire
        finally:
            wire.close()

    def open(
        self, path: str, token: str = "", creds: Path | None = None, body: Any = None, **said: str
    ) -> HTTPResponse:
        context = self.context(creds)
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        headers = {"Content-Type": "application/json", **said}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        sent = None if body is None else json.dumps(body).encode()
        connection.request("GET" if body is None else "POST", path, sent, headers)
        return connection.getresponse()

    def ask(self, path: str, *args: Any, **given: Any) -> tuple[int, Any]:
        answer = self.open(path, *args, **given)
        said = answer.read()
        is_json = said.startswith(b"{")
        return answer.status, json.loads(said) if is_json else said.decode()


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    http, mqtt = free_port(), free_port()
    few = ("--servers", "1", "--managers", "1")
    doors = ("--http", str(http), "--mqtt", str(mqtt))
    with running_cluster("--secure", *few, *doors) as cluster:
        yield Ground(cluster, tmp_path_factory.mktemp("creds"), http, mqtt)


@pytest.fixture(scope="module")
def truck(ground: Ground) -> Path:
    return ground.granted("truck-17", "--as", "device", "--emit", "truck/load")


def token(ground: Ground, *arguments: str) -> str:
    ran = ground.cluster.run("token", *arguments)
    assert ran.code == 0, ran.err
    return ran.out.strip()


def test_a_person_may_do_what_the_grant_says_and_nothing_else(ground: Ground, truck: Path) -> None:
    own = token(ground, "--credentials", str(truck))
    for shown in ({"token": own}, {"creds": truck}):
        assert ground.ask("/v1/events", body=TRUCK, **shown)[0] == 202
        status, said = ground.ask("/v1/events", body={**TRUCK, "address": "truck-18"}, **shown)
        assert (status, said["title"]) == (403, "Not allowed")
        assert "it may emit truck/load as truck-17" in said["detail"]
        assert ground.ask(READ, **shown)[0] == 403
        assert ground.ask(LIVE, **shown)[0] == 403
        for path in ("/v1/status", "/v1/table", "/v1/servers", "/v1/plan/runs", "/metrics"):
            status, said = ground.ask(path, **shown)
            assert (status, "for operators" in said["detail"]) == (403, True), path
        me = ground.ask("/v1/me", **shown)[1]
        assert (me["name"], me["role"]) == ("truck-17", "device")


def test_nobody_comes_in_without_a_proof_and_is_told_how(ground: Ground) -> None:
    for path in ("/v1/me", READ, LIVE, "/v1/status", "/metrics", "/v1/nothing"):
        answer = ground.open(path)
        assert (answer.status, "utuple token" in answer.read().decode()) == (401, True), path
        assert answer.headers["WWW-Authenticate"].startswith("Bearer realm=")
    assert ground.ask("/healthz")[0] == ground.ask("/readyz")[0] == 200
    assert ground.ask("/")[0] == 200  # the console's files: it asks to sign in


def test_a_token_in_the_address_is_not_taken(ground: Ground, truck: Path) -> None:
    own = token(ground, "--credentials", str(truck))
    assert ground.ask(f"/v1/me?token={own}")[0] == 401


def test_a_token_that_has_ended_is_named_as_such(ground: Ground, truck: Path) -> None:
    short = token(ground, "--credentials", str(truck), "--for", "1s")
    until(lambda: ground.ask("/v1/me", token=short)[0] == 401, "the token has ended")
    said = ground.ask("/v1/me", token=short)[1]["detail"]
    assert "the token of truck-17 (device) ended" in said
    assert "get a new one with `utuple token`" in said


def test_a_token_of_another_cluster_is_refused(ground: Ground) -> None:
    cluster = AuthorityFolder(ground.cluster.folder / "authority").read().authority.cluster
    now_us = time.time_ns() // 1_000
    elsewhere = new_authority(cluster, now_us)
    operator = Identity(cluster, Role.OPERATOR, "operator", now_us)
    forged = token_of(elsewhere.issue(operator, 1), now_us)
    status, said = ground.ask("/v1/status", token=forged)
    assert (status, "of another cluster" in said["detail"]) == (401, True)


def test_an_operator_signs_in_by_a_token_and_not_by_a_certificate(ground: Ground) -> None:
    operator = token(ground)  # of whoever has the folder
    assert ground.ask("/v1/status", token=operator)[1]["well"]
    status, said = ground.ask("/v1/status", creds=ground.cluster.folder / "operator.creds")
    assert (status, "by a token only" in said["detail"]) == (401, True)


def test_a_revocation_ends_open_streams_within_five_seconds(ground: Ground) -> None:
    creds = ground.granted("dispatch", "--as", "application", "--watch", "truck/*")
    own = token(ground, "--credentials", str(creds))
    boss = ground.granted("boss", "--as", "operator")
    pages = token(ground, "--credentials", str(boss))
    open_ = [ground.open(LIVE, own), ground.open("/v1/status/live", pages)]
    assert [one.status for one in open_] == [200, 200]
    for name in ("dispatch", "boss"):
        assert ground.cluster.run("revoke", name).code == 0
    revoked_s = time.monotonic()
    for answer in open_:
        last = answer.read().decode().strip().splitlines()[-1]
        assert "were revoked" in last
    assert time.monotonic() - revoked_s < 5
    assert [ground.ask("/v1/me", one)[0] for one in (own, pages)] == [401, 401]


def test_a_reader_belongs_to_who_made_it_also_at_a_door(ground: Ground) -> None:
    rights = ("--as", "application", "--watch", "truck/*", "--emit", "truck/*")
    own, others = (
        token(ground, "--credentials", str(ground.granted(name, *rights)))
        for name in ("first", "second")
    )
    assert ground.ask("/v1/events", own, body=TRUCK)[0] == 202
    stream = ground.open(f"{LIVE}&reader=orders&limit=1", own)
    lines = stream.read().decode().splitlines()
    id_ = next(line.removeprefix("id: ") for line in lines if line.startswith("id: "))
    assert ground.open(f"{LIVE}&reader=orders&limit=1", others).read(), "it has its own"
    for path in (f"{LIVE}&reader=orders", f"{LIVE}&reader=mine"):
        status, said = ground.ask(path, others, **{"Last-Event-ID": id_})
        assert (status, "another reader" in said["detail"]) == (400, True)
    assert ground.ask("/v1/readers/orders/ack", others, body={"id": id_})[0] == 400
    assert ground.ask("/v1/readers/orders/ack", own, body={"id": id_})[0] == 204


def test_a_page_of_another_site_is_refused_whatever_it_shows(ground: Ground, truck: Path) -> None:
    for headers in ({"Origin": "https://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert ground.ask("/v1/events", creds=truck, body=TRUCK, **headers)[0] == 403


def started(*options: str) -> tuple[int, str]:
    """A door that ends by itself."""
    command = [sys.executable, "-P", "-m", "utuple.doors.http", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def test_whoever_has_no_door_s_credentials_is_no_door(ground: Ground, truck: Path) -> None:
    code, said = started(
        "--at", ground.cluster.at, "--credentials", str(truck), "--listen", "127.0.0.1:0"
    )
    assert (code, "must be those of a door" in said) == (1, True), said
    code, said = started("--listen", "0.0.0.0:0")
    assert (code, "--credentials FILE" in said) == (2, True), said


# --- MQTT --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [V311, V5])
def test_a_device_may_publish_what_the_grant_says_and_nothing_else(
    ground: Ground, truck: Path, version: int
) -> None:
    password = token(ground, "--credentials", str(truck)).encode()
    for shown, said in ((truck, {}), (None, {"user_name": "truck-17", "password": password})):
        with ground.wire(shown, version) as wire:
            assert wire.connect(f"c{version}", **said).reason == 0
            assert wire.publish("truck/load/truck-17", b'{"kg": 900}') == 0
            assert wire.subscribe("truck/load/#")[0] >= 0x80
        with ground.wire(shown) as wire:
            assert wire.connect("c5", **said).reason == 0
            for wrong in ("truck/load/truck-18", "bus/load/truck-17", "some/thing", "cmd/a/b/c"):
                assert wire.publish(wrong) == Reason.NOT_AUTHORIZED, wrong
            assert wire.subscribe("truck/load/#") == (Reason.NOT_AUTHORIZED,)


def test_both_doors_and_the_sdk_meet_as_who_they_are(ground: Ground, truck: Path) -> None:
    creds = ground.granted("reader", "--as", "application", "--watch", "truck/*")
    with ground.wire(creds) as watching, ground.wire(truck) as driving:
        assert watching.connect("watching").reason == driving.connect("driving").reason == 0
        assert watching.subscribe("truck/#") == (2,)
        assert driving.publish("truck/load/truck-17", b'{"kg": 4321}', retain=True) == 0
        assert json.loads(watching.message().payload) == {"kg": 4321}
        assert watching.publish("truck/load/truck-17") == Reason.NOT_AUTHORIZED
        assert watching.subscribe("truck/load/truck-17") == (
            2,
        )  # what is retained is its newest event
        assert watching.message().retain
    _, said = ground.ask(f"{READ}&newest=true&limit=1", creds=creds)
    assert said["events"][0]["data"] == {"kg": 4321}


def test_a_family_that_nobody_had_when_its_reader_subscribed_is_given_to_him(
    ground: Ground,
) -> None:
    """He may watch nothing else, so that nothing at all was open for him."""
    crane = ground.granted("crane-1", "--as", "device", "--emit", "crane/load")
    reader = ground.granted("foreman", "--as", "application", "--watch", "crane/*")
    with ground.wire(reader) as watching, ground.wire(crane) as driving:
        assert watching.connect("foreman").reason == driving.connect("crane").reason == 0
        assert watching.subscribe("crane/#") == (2,)
        assert driving.publish("crane/load/crane-1", b'{"kg": 7}') == 0
        assert json.loads(watching.message().payload) == {"kg": 7}


def test_who_shows_nothing_or_something_wrong_is_refused_in_the_connack(
    ground: Ground, truck: Path
) -> None:
    good = token(ground, "--credentials", str(truck)).encode()
    for said, reason, words in (
        ({}, Reason.NOT_AUTHORIZED, "utuple token"),
        ({"user_name": "truck-17"}, Reason.NOT_AUTHORIZED, "utuple token"),
        ({"password": b"secret"}, Reason.BAD_USER_NAME_OR_PASSWORD, "cannot be read"),
        (
            {"user_name": "truck-18", "password": good},
            Reason.BAD_USER_NAME_OR_PASSWORD,
            "the user name is 'truck-18'",
        ),
    ):
        with ground.wire() as wire:
            answer = wire.connect("x", **said)
            assert answer.reason is reason
            assert words in answer.properties[Property.REASON_STRING]
        with ground.wire(version=V311) as wire:
            assert wire.connect("x", **{"user_name": "truck-17", **said}).reason is reason


def test_a_client_id_is_its_owner_s(ground: Ground, truck: Path) -> None:
    other = ground.granted("truck-19", "--as", "device", "--emit", "truck/load")
    with ground.wire(truck) as first, ground.wire(other) as second:
        assert first.connect("same").reason == second.connect("same").reason == 0
        assert first.publish("truck/load/truck-17") == 0  # nobody has taken over
        assert second.publish("truck/load/truck-19") == 0


def test_a_revocation_ends_mqtt_connections_within_five_seconds(ground: Ground) -> None:
    creds = ground.granted("sub", "--as", "application", "--watch", "truck/*")
    idle = ground.granted("idle", "--as", "device", "--emit", "truck/load")
    with ground.wire(creds) as watching, ground.wire(idle) as silent:
        assert watching.connect("w").reason == silent.connect("s").reason == 0
        assert watching.subscribe("truck/load/#") == (2,)
        for name in ("sub", "idle"):
            assert ground.cluster.run("revoke", name).code == 0
        revoked_s = time.monotonic()
        assert watching.goodbye() == silent.goodbye() == Reason.NOT_AUTHORIZED
        assert time.monotonic() - revoked_s < 5
    with ground.wire(creds) as wire:
        answer = wire.connect("w")
        assert answer.reason is Reason.NOT_AUTHORIZED
        assert "were revoked" in answer.properties[Property.REASON_STRING]


def test_a_session_that_is_kept_goes_on_with_another_token(ground: Ground, truck: Path) -> None:
    creds = ground.granted("keeper", "--as", "application", "--watch", "truck/*")
    kept = {"clean_start": False, "properties": {"session_expiry_interval": 600}}
    with ground.wire() as wire:
        password = token(ground, "--credentials", str(creds)).encode()
        assert wire.connect("kept", password=password, **kept).reason == 0
        assert wire.subscribe("truck/load/#") == (2,)
    with ground.wire(truck) as driving:
        assert driving.connect("d").reason == 0
        assert driving.publish("truck/load/truck-17", b'{"kg": 77}') == 0
    with ground.wire() as wire:
        password = token(ground, "--credentials", str(creds), "--for", "2h").encode()
        answer = wire.connect("kept", password=password, **kept)
        assert (answer.reason, answer.session_present) == (0, True)
        assert json.loads(wire.message().payload) == {"kg": 77}
