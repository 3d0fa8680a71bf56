"""docs/security.md, followed to the letter but for the port; and what its sentences promise, on a real cluster."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.cluster import COMMAND_LIMIT_S, Cluster, free_port, running_cluster
from utuple.admin import transport
from utuple.client.transport import GrpcTransport
from utuple.errors import Unavailable
from utuple.security.authority import new_authority
from utuple.security.identity import Identity, Role
from utuple.security.own import OWN, OwnCredentials
from utuple.wire import utuple_pb2 as pb

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
TITLE = "## From nothing to a sensor and an application"


def test_the_page_s_commands_are_six_at_most_and_work_as_printed(tmp_path: Path) -> None:
    section = PAGE.read_text(encoding="utf-8").split(TITLE)[1].split("\n## ")[0]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found is not None
    commands = found[1].splitlines()
    assert len(commands) <= 6
    port = free_port()
    environment = {
        **os.environ,
        "UTUPLE_DATA": str(tmp_path / "data"),
        "UTUPLE_AT": f"127.0.0.1:{port}",
        "PATH": f"{Path(os.sys.executable).parent}:{os.environ['PATH']}",  # type: ignore[attr-defined]
    }
    said = []
    try:
        for command in commands:
            command = command.replace("utuple up", f"utuple up --port {port} --servers 1")
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=COMMAND_LIMIT_S,
                check=False,
            )
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            said.append(done.stdout)
    finally:
        subprocess.run(["/bin/sh", "-c", "utuple down"], env=environment, check=True)
    assert json.loads(said[-1])["data"] == {"kg": 1200}
    assert (tmp_path / "truck-17.creds").stat().st_mode & 0o777 == 0o600


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("--secure", "--servers", "2", "--managers", "2") as cluster:
        yield cluster


def granted(cluster: Cluster, tmp_path: Path, name: str, *arguments: str) -> str:
    path = str(tmp_path / f"{name}.creds")
    ran = cluster.run("grant", name, *arguments, "-o", path)
    assert ran.code == 0, ran.err
    return path


EVENT = ("--subject", "truck", "--type", "load")


def test_a_revocation_ends_an_open_watch_within_five_seconds(
    cluster: Cluster, tmp_path: Path
) -> None:
    creds = granted(cluster, tmp_path, "dispatch", "--as", "application", "--watch", "truck/*")
    truck = granted(cluster, tmp_path, "truck-17", "--as", "device", "--emit", "truck/load")
    watching = cluster.start("watch", *EVENT, "--credentials", creds)
    assert watching.stdout is not None
    emitted = cluster.run(
        *("emit", *EVENT, "--address", "truck-17", "--data", "{}"), "--credentials", truck
    )
    assert emitted.code == 0, emitted.err
    assert watching.stdout.readline()
    assert cluster.run("revoke", "dispatch").code == 0
    revoked_s = time.monotonic()
    _, err = watching.communicate(timeout=30)
    assert time.monotonic() - revoked_s < 5
    assert "were revoked" in err
    again = cluster.run("read", *EVENT, "--credentials", creds)
    assert (again.code, "were revoked" in again.err) == (1, True)


def test_what_is_not_granted_is_refused_with_what_would_be(
    cluster: Cluster, tmp_path: Path
) -> None:
    truck = granted(cluster, tmp_path, "truck-18", "--as", "device", "--emit", "truck/load")
    for asked in (
        ("emit", *EVENT, "--address", "truck-19", "--data", "{}"),
        ("emit", "--subject", "ship", "--type", "load", "--address", "truck-18", "--data", "{}"),
        ("read", *EVENT),
        ("command", *EVENT, "--address", "truck-18", "--data", "{}"),
        ("serve", "--subject", "a", "--type", "b", "--address", "truck-18", "--limit", "1"),
    ):
        ran = cluster.run(*asked, "--credentials", truck)
        assert ran.code == 1, asked
        assert "it may emit truck/load as truck-18" in ran.err, (asked, ran.err)
    lines = '{"subject":"truck","type":"load","address":"truck-18","data":{}}\n' * 2
    wrong = '{"subject":"truck","type":"load","address":"x","data":{}}\n'
    ran = cluster.run("emit", "--json", "--credentials", truck, stdin=lines + wrong)
    assert ran.code == 1, ran.err
    assert (ran.json()["emitted"], ran.json()["refused"]) == (2, 1)


def test_who_shows_nothing_or_holds_nothing_is_told_what_to_do(
    cluster: Cluster, tmp_path: Path
) -> None:
    nobody = cluster.run("status")
    assert (nobody.code, "--credentials" in nobody.err) == (1, True)
    device = granted(cluster, tmp_path, "truck-20", "--as", "device", "--emit", "truck/load")
    status = cluster.run("status", "--credentials", device)
    assert (status.code, "for operators and programs" in status.err) == (1, True)
    grants = cluster.run("grants", "--credentials", device)
    assert (grants.code, "truck-20 (device) may not call Trust/Grants" in grants.err) == (1, True)
    as_its_operator = cluster.run("grants")  # who has the cluster's folder
    assert (as_its_operator.code, "truck-20 (device)" in as_its_operator.out) == (0, True)


def test_the_audit_knows_who_did_what_and_notices_a_change(
    cluster: Cluster, tmp_path: Path
) -> None:
    operator = str(cluster.folder / "operator.creds")
    granted(cluster, tmp_path, "truck-21", "--as", "device", "--emit", "truck/load")
    ran = cluster.run("audit", "--verify", "--json", "--credentials", operator)
    assert ran.code == 0, ran.err
    done = {(entry["what"], entry["about"].get("name")) for entry in ran.json()["entries"]}
    assert ("grant", "truck-21") in done
    kept = cluster.folder / "authority" / "audit.jsonl"
    kept.write_bytes(kept.read_bytes().replace(b"truck-21", b"truck-99"))
    forged = cluster.run("audit", "--verify", "--credentials", operator)
    assert (forged.code, "chain is broken" in forged.err) == (1, True)
    kept.write_bytes(kept.read_bytes().replace(b"truck-99", b"truck-21"))


def test_an_audit_that_cannot_be_asked_for_is_not_said_to_hold(cluster: Cluster) -> None:
    """As whoever stops a program to hide its audit would like it."""
    operator = str(cluster.folder / "operator.creds")
    monitor = cluster.pids()["monitor-1"]
    os.kill(monitor, signal.SIGSTOP)
    try:
        ran = cluster.run("audit", "--verify", "--credentials", operator)
    finally:
        os.kill(monitor, signal.SIGCONT)
    assert (ran.code, "monitor-1 is not heard: " in ran.err) == (1, True), ran.err
    assert "chains hold" not in ran.err


def test_two_operators_who_grant_at_a_time_both_have_their_way(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Each with a copy of the authority: what one finds in force of the other's it takes up, and decides again."""
    copies = [tmp_path / f"authority-{number}" for number in range(3)]
    for copy in copies:
        shutil.copytree(cluster.folder / "authority", copy)
    granting = [
        cluster.start(
            *("grant", f"at-once-{number}", "--as", "device", "--emit", "truck/load"),
            *("--authority", str(copy), "-o", str(tmp_path / f"{number}.creds")),
            *("--credentials", str(cluster.folder / "operator.creds")),
        )
        for number, copy in enumerate(copies)
    ]
    assert [one.wait(COMMAND_LIMIT_S) for one in granting] == [0, 0, 0]
    shown = cluster.run("grants", "--json").json()["grants"]
    assert {f"at-once-{number}" for number in range(3)} <= {one["name"] for one in shown}


def test_a_program_and_the_operator_are_revoked_and_go_on_with_new_credentials(
    cluster: Cluster, tmp_path: Path
) -> None:
    stolen = [
        (name, tmp_path / f"{name}.creds", path)
        for name, path in (
            ("server-2", cluster.folder / "credentials" / "server-2.creds"),
            ("operator", cluster.folder / "operator.creds"),
        )
    ]
    for name, copy, path in stolen:
        shutil.copy(path, copy)
        ran = cluster.run("revoke", name)
        assert ran.code == 0, ran.err
        assert f"Renewed: {name}." in ran.err
    for _, copy, _ in stolen:
        refused = cluster.run("whoami", "--credentials", str(copy))
        assert (refused.code, "were revoked" in refused.err) == (1, True), refused.err
    assert cluster.run("whoami", "--credentials", str(stolen[1][2])).code == 0
    watcher = granted(cluster, tmp_path, "looker", "--as", "application", "--watch", "truck/load")
    sensor = granted(cluster, tmp_path, "again", "--as", "device", "--emit", "truck/load")
    for number in range(4):  # whatever server takes it
        data = json.dumps({"again": number})
        emitted = ("emit", *EVENT, "--address", "again", "--data", data)
        assert cluster.run(*emitted, "--credentials", sensor).code == 0
    read = cluster.run("read", *EVENT, "--where", "again>=0", "--credentials", watcher)
    assert len(read.out.splitlines()) == 4, read.err
    operator = ("--credentials", str(stolen[1][2]))
    certificates = cluster.run("status", "--json", *operator).json()["certificates"]
    assert len({one["grants_number"] for one in certificates if not one["is_own"]}) == 1


def address_of(cluster: Cluster, server: str) -> str:
    return f"127.0.0.1:{cluster.port + 10 + int(server.rpartition('-')[2])}"


def audited(cluster: Cluster) -> list[dict[str, Any]]:
    """Asked as who has the folder."""
    ran = cluster.run("audit", "--verify", "--json")
    assert ran.code == 0, ran.err
    entries: list[dict[str, Any]] = ran.json()["entries"]
    return entries


def test_moves_and_drains_are_in_the_audit_with_who_ordered_them(cluster: Cluster) -> None:
    operator = ("--credentials", str(cluster.folder / "operator.creds"))
    helped = cluster.run("server", "help", "server-1", *operator)
    assert helped.code == 0, helped.err
    address = address_of(cluster, "server-2")

    async def drain_and_stay() -> None:
        OWN.set(OwnCredentials(cluster.folder / "operator.creds"))
        await transport.leave(address)
        await transport.leave(address, stay=True)

    asyncio.run(drain_and_stay())
    found = {(entry["where"], entry["what"]): entry["who"] for entry in audited(cluster)}
    for where, what in (("server-1", "move"), ("server-2", "drain"), ("server-2", "stay")):
        assert found[where, what].endswith("/operator/operator"), (where, what)


def test_whoever_does_not_get_through_the_handshake_is_counted(cluster: Cluster) -> None:
    host, _, port = address_of(cluster, "server-1").rpartition(":")
    stranger = new_authority("elsewhere", time.time_ns() // 1_000)
    identity = Identity("elsewhere", Role.OPERATOR, "operator", time.time_ns() // 1_000)
    foreign = stranger.issue(identity, 1).client_context()
    foreign.verify_mode = ssl.CERT_NONE
    bare = ssl.create_default_context()
    bare.check_hostname, bare.verify_mode = False, ssl.CERT_NONE
    for context in (foreign, bare):
        context.set_alpn_protocols(["h2"])
        with socket.create_connection((host, int(port))) as plain:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                tls = context.wrap_socket(plain)
                assert tls.recv(1), "the connection was closed"
                raise ConnectionError
    causes = [
        cause
        for entry in audited(cluster)
        if (entry["where"], entry["what"]) == ("server-1", "refused")
        for cause in entry["about"]
        if cause.startswith("handshake from 127.0.0.1: ")
    ]
    assert any("certificate" in cause for cause in causes), causes
    assert any("PEER_DID_NOT_RETURN" in cause for cause in causes), causes


def test_a_client_speaks_only_to_the_server_that_the_line_names(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A manager that lies can withhold, not misroute."""
    creds = granted(cluster, tmp_path, "careful", "--as", "device", "--emit", "truck/load")

    async def register(name: str) -> None:
        calls = GrpcTransport(OwnCredentials(creds))
        address = address_of(cluster, "server-1")
        calls.expect(address, name)
        try:
            await calls.register(address, pb.RegisterRequest(), 10.0)
        finally:
            await calls.close()

    asyncio.run(register("server-1"))
    with pytest.raises(Unavailable, match="server-1 answers where server-2 is said to be"):
        asyncio.run(register("server-2"))


@pytest.mark.parametrize("program", ["utuple.server", "assignment_manager", "sca_server"])
def test_a_program_without_credentials_listens_on_loopback_only(program: str) -> None:
    more = [] if program == "assignment_manager" else ["--managers", "127.0.0.1:1"]
    more += ["--database", "postgresql://127.0.0.1:1/x"] if program == "utuple.server" else []
    place = ("--listen", "0.0.0.0:0", "--advertise", "10.1.2.3:7411")
    done = subprocess.run(
        [sys.executable, "-P", "-m", program, "--name", "x-1", *place, *more],
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "listens on loopback only" in done.stderr, done.stderr
    assert "--credentials FILE" in done.stderr


def test_no_secret_is_in_what_programs_show(cluster: Cluster) -> None:
    keys = [
        line
        for path in (*cluster.folder.glob("*.creds"), *cluster.folder.rglob("*.pem"))
        for line in path.read_text().split("PRIVATE KEY-----")[1::2]
    ]
    assert keys
    secrets = [key.split("\n")[1][:40] for key in keys]
    shown = "".join(path.read_text() for path in (cluster.folder / "logs").glob("*.log"))
    for pid in cluster.pids().values():
        for what in ("cmdline", "environ"):
            shown += Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace")
    assert not [secret for secret in secrets if secret in shown]


def test_the_authority_is_replaced_while_everything_runs(cluster: Cluster, tmp_path: Path) -> None:
    """Two valid at once; then the old one's credentials are refused, and named as such."""
    before = granted(cluster, tmp_path, "early", "--as", "device", "--emit", "truck/load")
    watcher = granted(cluster, tmp_path, "seer", "--as", "application", "--watch", "truck/load")
    event = ("emit", *EVENT, "--address")
    watching = cluster.start("watch", *EVENT, "--credentials", watcher)
    assert cluster.run("authority", "replace").code == 0
    after = granted(cluster, tmp_path, "late", "--as", "device", "--emit", "truck/load")
    for name, creds in (("early", before), ("late", after)):
        ran = cluster.run(*event, name, "--data", "{}", "--credentials", creds)
        assert ran.code == 0, (name, ran.err)
    operator = str(cluster.folder / "operator.creds")
    status = cluster.run("status", "--json", "--credentials", operator)
    assert status.code == 0, status.err
    renewed = granted(cluster, tmp_path, "seer", "--as", "application", "--watch", "truck/load")
    assert renewed == watcher  # the file is replaced under the program that watches
    retired = cluster.run("authority", "retire")
    assert retired.code == 0, retired.err
    old = cluster.run(*event, "early", "--data", "{}", "--credentials", before)
    assert old.code == 1
    assert any(said in old.err for said in ("different clusters", "refuses", "was replaced")), (
        old.err
    )
    new = cluster.run(*event, "late", "--data", '{"last": 1}', "--credentials", after)
    assert new.code == 0, new.err
    assert watching.stdout is not None
    for line in watching.stdout:
        if json.loads(line)["data"] == {"last": 1}:
            break
    watching.terminate()
    assert cluster.run("status", "--credentials", operator).code == 0


def test_status_shows_until_when_certificates_hold(cluster: Cluster, tmp_path: Path) -> None:
    short = str(tmp_path / "short.creds")
    assert cluster.run("grant", "ops", "--as", "operator", "--days", "7", "-o", short).code == 0
    status = cluster.run("status", "--json", "--credentials", short)
    assert status.code == 0, status.err
    names = {one["name"] for one in status.json()["certificates"]}
    assert {"ops", "server-1", "manager-1", "manager-2", "sca-1", "monitor-1"} <= names
    advised = [said for said in status.json()["advice"] if "your own" in said]
    assert len(advised) == 1
    long = cluster.run("status", "--json", "--credentials", str(cluster.folder / "operator.creds"))
    assert not [said for said in long.json()["advice"] if "credentials end" in said]


def test_expired_credentials_are_named_as_such_to_their_owner(
    cluster: Cluster, tmp_path: Path
) -> None:
    brief = str(tmp_path / "brief.creds")
    days = str(1 / 86_400)
    given = ("grant", "brief", "--as", "device", "--emit", "truck/load", "--days", days)
    assert cluster.run(*given, "-o", brief).code == 0
    time.sleep(2)  # until it has ended
    ran = cluster.run("emit", *EVENT, "--address", "brief", "--data", "{}", "--credentials", brief)
    assert ran.code == 1
    assert "credentials of brief (device) ended" in ran.err
