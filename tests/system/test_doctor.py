"""The doctor finds what is planted in a real cluster, on its machine and in its settings, and names the cure."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

import utuple
from tests.system.cluster import Cluster, ended, free_port, running_cluster
from tests.waiting import until
from utuple.cli.doctor.gathering import gathered
from utuple.cli.doctor.judging import Finding, judged
from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.layout import Layout
from utuple.local.temporary import temporary_folder
from utuple.runtime.postgresql.config import PostgresConfig
from utuple.runtime.postgresql.embedded import EmbeddedPostgres
from utuple.store.postgres.durability import DURABILITY

pytestmark = [pytest.mark.slow]

ALWAYS = "kinds of programs"
"""There is no load monitor here, as asked for."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    few = ("--servers", "2", "--managers", "1", "--no-monitor", "--capacity", "4MB")
    with running_cluster(*few) as cluster:
        yield cluster


def findings(cluster: Cluster, at: str = "", folder: Path | None = None) -> dict[str, Finding]:
    """What is wrong, as `utuple doctor` finds it."""
    asked = gathered([at or cluster.at], DataFolder(folder or cluster.folder))
    return {one.name: one for one in judged(asyncio.run(asked)) if not one.is_well}


# --- faults ----------------------------------------------------------------------------------------


@contextmanager
def stopped(cluster: Cluster, name: str) -> Iterator[None]:
    pid = cluster.pid(name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def another_program_at_its_port(cluster: Cluster) -> Iterator[None]:
    """The sCA server has died, and somebody took its port before it was started again."""
    port = cluster.port + 21
    with stopped(cluster, "supervisor"), socket.socket() as other:
        os.kill(cluster.pid("sca-1"), signal.SIGKILL)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def bound() -> bool:
            try:
                other.bind(("127.0.0.1", port))
            except OSError:
                return False
            return True

        until(bound, "its port is free")
        other.listen()
        yield


@contextmanager
def a_certificate_that_ends_soon(cluster: Cluster) -> Iterator[None]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "truck-17")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    made = made.public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now).not_valid_after(now + timedelta(days=3, hours=1))
    path = cluster.folder / "truck-17.creds"
    signed = made.sign(key, hashes.SHA256())
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    try:
        yield
    finally:
        path.unlink()


@contextmanager
def few_open_files(cluster: Cluster) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def an_old_package(cluster: Cluster) -> Iterator[None]:
    place = cluster.folder / "packages"
    described = place / "orjson-0.1.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: orjson\nVersion: 0.1\n")
    sys.path.insert(0, str(place))
    try:
        yield
    finally:
        sys.path.remove(str(place))
        shutil.rmtree(place)


@contextmanager
def a_full_disk(cluster: Cluster) -> Iterator[None]:
    """The system says so: a real one would take root's rights, or a gigabyte."""
    real = os.statvfs

    def full(path: str) -> object:
        told = real(path)
        names = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail")
        said = {name: getattr(told, name) for name in names}
        return SimpleNamespace(**{**said, "f_bfree": 10, "f_bavail": 10})

    os.statvfs = full  # type: ignore[assignment]
    try:
        yield
    finally:
        os.statvfs = real


Plant = Callable[[Cluster], AbstractContextManager[None]]
FAULTS: list[tuple[str, Plant, str, str]] = [
    ("the sCA server hangs", lambda c: stopped(c, "sca-1"), "programs", "logs/sca-1.log"),
    ("its port is taken", another_program_at_its_port, "ports", "--port"),
    ("a certificate ends", a_certificate_that_ends_soon, "certificates", "utuple grant"),
    ("few open files", few_open_files, "open files", "ulimit -n"),
    ("an old package", an_old_package, "packages", "pip install --upgrade"),
    ("a full disk", a_full_disk, "disk", "free at least"),
]


@pytest.mark.parametrize(
    ("plant", "name", "cure"), [one[1:] for one in FAULTS], ids=[one[0] for one in FAULTS]
)
def test_a_planted_fault_is_found_with_its_cure_and_gone_when_it_is_mended(
    cluster: Cluster, plant: Plant, name: str, cure: str
) -> None:
    with plant(cluster):
        found = until(lambda: findings(cluster).get(name), "it is found")
        assert found is not None and cure in found.cure
    until(lambda: list(findings(cluster)) == [ALWAYS], "it is mended")


def test_what_is_missing_is_told_with_where_to_read_how_it_is_started(cluster: Cluster) -> None:
    found = findings(cluster)[ALWAYS]
    assert "no load monitor" in found.said
    assert "docs/operating.md" in found.cure


def test_nobody_answers_where_there_is_no_cluster(cluster: Cluster) -> None:
    found = findings(cluster, at="127.0.0.1:1")
    assert list(found) == ["assignment managers"]
    assert "utuple up" in found["assignment managers"].cure


def test_a_folder_that_cannot_be_written_is_found(cluster: Cluster) -> None:
    """Not by its rights, which do not hold for root."""
    found = findings(cluster, folder=Path("/proc/utuple"))
    assert "--data" in found["data folder"].cure


def test_a_server_that_hangs_is_named_and_that_an_ea_does_not_come_back(cluster: Cluster) -> None:
    home = home_of_the_round_trip(cluster)
    with stopped(cluster, home):
        found = findings(cluster)
    assert f"logs/{home}.log" in found["programs"].cure
    assert "utuple status" in found["round trip"].cure


def home_of_the_round_trip(cluster: Cluster) -> str:
    from utuple.model.key import key_of

    key = key_of("utuple-doctor", "round-trip")
    lines = cluster.run("table", "--json").json()["lines"]
    (line,) = (one for one in lines if int(one["start"], 16) <= key < int(one["end"], 16))
    return str(line["home"])


def test_a_table_that_is_not_whole_is_told_with_how_a_cluster_is_founded(
    cluster: Cluster, tmp_path: Path
) -> None:
    at = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-P", "-m", "assignment_manager", "--listen", at, "--name", "alone"]
    with (tmp_path / "log").open("w") as log, ended(subprocess.Popen(command, stderr=log)):
        found = until(lambda: findings(cluster, at=at).get("assignment table"), "it answers")
    assert found is not None and "utuple found" in found.cure


def test_a_store_that_is_nearly_full_is_told(cluster: Cluster) -> None:
    """Not undone, so it is one of the last."""
    events = (
        {
            "subject": f"family-{number % 40}",
            "type": "t",
            "address": "a",
            "data": {"noise": secrets.token_hex(5_000)},
            "lifetime_s": 600,
        }
        for number in range(1_200)
    )
    with utuple.blocking.connect(cluster.at) as space:
        space.emit_many(events)
    found = until(lambda: findings(cluster).get("room"), "it is found")
    assert found is not None and "server add" in found.cure


def test_a_clock_that_is_wrong_is_told(cluster: Cluster, tmp_path: Path) -> None:
    """A load monitor on a machine whose clock is a minute and a half behind; the last one, since managers remember it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import time\nreal = time.time_ns\ntime.time_ns = lambda: real() - 90_000_000_000\n"
    )
    command = [sys.executable, "-P", "-m", "load_monitor", "--name", "monitor-1"]
    where = ["--listen", f"127.0.0.1:{free_port()}", "--managers", cluster.at]
    slow = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with (
        (tmp_path / "log").open("w") as log,
        ended(subprocess.Popen([*command, *where], env=slow, stderr=log)),
    ):
        found = until(lambda: findings(cluster).get("clocks"), "it is found")
    assert found is not None and "monitor-1 -8" in found.said
    assert "NTP" in found.cure


# --- the operator's own PostgreSQL -----------------------------------------------------------------


class Careless(PostgresConfig):
    """As its operator runs it: durability is what its files say, not what we start ours with."""

    def settings(self) -> dict[str, str]:
        return {name: value for name, value in super().settings().items() if name not in DURABILITY}


@pytest.fixture(scope="module")
def careless() -> Iterator[tuple[EmbeddedPostgres, DataFolder]]:
    with temporary_folder("doctor") as place, EmbeddedPostgres(place / "pg", Careless()) as server:
        folder = DataFolder(place / "cluster")
        folder.path.mkdir()
        layout = Layout(servers=1, managers=1, port=free_port())
        folder.write_cluster(ClusterFile(layout, (server.dsn("postgres"),)))
        yield server, folder


@pytest.mark.parametrize(
    ("name", "planted", "mended"),
    [
        ("fsync", "SYSTEM", "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()"),
        ("full_page_writes", "SYSTEM", "ALTER SYSTEM SET full_page_writes = on"),
        ("synchronous_commit", "SYSTEM", "ALTER SYSTEM SET synchronous_commit = on"),
        (
            "synchronous_commit",
            "DATABASE postgres",
            "ALTER DATABASE postgres RESET synchronous_commit",
        ),
        ("synchronous_commit", "ROLE postgres", "ALTER ROLE postgres RESET synchronous_commit"),
    ],
)
def test_durability_that_was_turned_off_is_found_and_the_cure_that_is_named_turns_it_on(
    careless: tuple[EmbeddedPostgres, DataFolder], name: str, planted: str, mended: str
) -> None:
    server, folder = careless

    def found() -> Finding | None:
        told = judged(asyncio.run(gathered(["127.0.0.1:1"], folder)))
        return {one.name: one for one in told if not one.is_well}.get("durability")

    def say(*statements: str) -> None:
        with psycopg.connect(server.dsn("postgres"), autocommit=True) as asked:
            for statement in statements:
                asked.execute(statement.encode())

    say(f"ALTER {planted} SET {name} = off", "SELECT pg_reload_conf()")
    wrong = until(found, "it is found")
    assert wrong is not None
    assert wrong.said == f"server-1: {name} = off"
    assert mended in wrong.cure
    say(*wrong.cure.partition("lost: ")[2].split("; "))
    until(lambda: found() is None, "the cure cures")


def test_the_command_says_it_to_people_and_by_its_exit_code(cluster: Cluster) -> None:
    ran = cluster.run("doctor", "--at", "127.0.0.1:1")
    assert ran.code == 1
    assert "✗ assignment managers: none answers at 127.0.0.1:1" in ran.out
    assert "→ start the cluster with `utuple up`" in ran.out
    assert "1 to mend." in ran.out
