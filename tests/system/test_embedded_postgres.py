"""The embedded PostgreSQL, with real binaries, real processes and real kill -9."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import LiteralString
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from utuple.runtime.postgresql.binaries import find_binaries
from utuple.runtime.postgresql.embedded import EmbeddedPostgres, PostgresConfig, PostgresUnavailable
from utuple.runtime.postgresql.identity import NOBODY
from utuple.runtime.postgresql.process import pid_exists, processes_on, wait_until

ROOT = Path(__file__).parents[2]
CHILD_LIMIT_S = 60.0
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users, so needs root")
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")


@pytest.fixture
def place() -> Iterator[Path]:
    """Not tmp_path: pytest keeps those (40 MB each) and hides them from other users."""
    with tempfile.TemporaryDirectory(prefix="utuple-test-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder).resolve()


Make = Callable[..., EmbeddedPostgres]


@pytest.fixture
def make(place: Path) -> Iterator[Make]:
    made: list[EmbeddedPostgres] = []

    def embedded(name: str = "pg", config: PostgresConfig | None = None) -> EmbeddedPostgres:
        made.append(EmbeddedPostgres(place / name, config))
        return made[-1]

    yield embedded
    for postgres in made:
        postgres.stop()


def ask(postgres: EmbeddedPostgres, query: LiteralString, database: str = "postgres") -> object:
    with psycopg.connect(postgres.dsn(database)) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]


def until(condition: Callable[[], bool]) -> None:
    assert wait_until(condition, CHILD_LIMIT_S, 0.01)


def kill_hard(postgres: EmbeddedPostgres) -> None:
    pid = postgres.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: not postgres.is_running)


def socket_folder(postgres: EmbeddedPostgres) -> Path:
    return Path(parse_qs(urlsplit(postgres.dsn()).query)["host"][0])


def shared_memory(pid: int) -> tuple[list[Path], list[str]]:
    """POSIX segments this postmaster has mapped, and the ids of its System V ones."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    posix = {line.split()[5] for line in lines if "/dev/shm/" in line}
    return [Path(name) for name in sorted(posix)], system_v_segments(pid)


def system_v_segments(creator: int) -> list[str]:
    rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()]
    return [row[1] for row in rows if row[4] == str(creator)]


def names_in(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


PRELUDE = """
import ctypes, os, signal, sys
from pathlib import Path
from utuple.runtime.postgresql.embedded import EmbeddedPostgres, PostgresUnavailable
"""


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def child(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    with python(script, *arguments) as process:
        out, err = process.communicate(timeout=CHILD_LIMIT_S)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@needs_proc
@pytest.mark.parametrize("crashed", [False, True], ids=["running", "crashed"])
@pytest.mark.parametrize("name", ["pg", "deep/" * 30 + "pg"], ids=["near", "deep"])
def test_stop_leaves_data_and_log_and_nothing_else(make: Make, name: str, crashed: bool) -> None:
    postgres = make(name)
    assert postgres.start()
    pid, sockets = postgres.pid, socket_folder(postgres)
    assert pid is not None
    posix, system_v = shared_memory(pid)
    assert posix and system_v and processes_on(postgres.folder / "data")
    if crashed:
        kill_hard(postgres)

    postgres.stop()

    assert not postgres.is_running and not pid_exists(pid)
    assert processes_on(postgres.folder / "data") == []
    assert names_in(postgres.folder) == {"data", "postgres.log"}
    assert not (postgres.folder / "data" / "postmaster.pid").exists()
    assert sockets == postgres.folder or not sockets.exists()
    assert not any(segment.exists() for segment in posix)
    assert not system_v_segments(pid)
    postgres.stop()  # nothing to do is no error


def test_a_folder_too_deep_for_a_socket_gets_a_short_private_one(make: Make) -> None:
    postgres = make("very-deep-folder/" * 10)
    postgres.start()
    short = socket_folder(postgres)
    assert len(os.fsencode(postgres.folder)) > 107 and short.parent != postgres.folder
    assert stat.S_IMODE(short.stat().st_mode) == 0o700 and short.stat().st_uid == os.geteuid()
    assert ask(postgres, "SELECT 1") == 1


@pytest.mark.parametrize("name", ["with space", "comma,quote\"and'more", "ü%20?&=#"])
def test_a_folder_may_have_any_name(make: Make, name: str) -> None:
    postgres = make(name)
    postgres.start()
    assert ask(postgres, "SELECT 1") == 1


def test_commits_survive_kill_9_beside_a_backend_that_does_not_notice_it(make: Make) -> None:
    postgres = make()
    postgres.start()
    with psycopg.connect(postgres.dsn()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    with closing(psycopg.connect(postgres.dsn())) as busy:
        # It never waits, so it never sees that its postmaster is gone.
        busy.pgconn.send_query(b"DO $$ BEGIN LOOP END LOOP; END $$")
        active: LiteralString = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO $$%'"
        until(lambda: ask(postgres, active) == 1)
        kill_hard(postgres)

        assert postgres.start()

    assert ask(postgres, "SELECT answer FROM kept") == 42


def test_a_stale_pid_file_with_the_pid_of_another_process_is_overcome(make: Make) -> None:
    postgres = make()
    postgres.start()
    pid_file = postgres.folder / "data" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    kill_hard(postgres)
    # Not our own pid: PostgreSQL knows that its parent is not its predecessor.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as stranger:
        stale = "\n".join([str(stranger.pid), *lines[1:]]) + "\n"
        pid_file.write_text(stale)
        (postgres.folder / ".s.PGSQL.5432.lock").write_text(stale)
        assert not postgres.is_running

        assert postgres.start()

        assert stranger.poll() is None, "it is somebody else's and was left alone"
    assert ask(postgres, "SELECT 1") == 1


def test_a_postmaster_outlives_its_launcher_and_is_adopted(make: Make) -> None:
    postgres = make()
    died = child(
        "postgres = EmbeddedPostgres(Path(sys.argv[1])); postgres.start()\n"
        "print(postgres.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)",
        postgres.folder,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    pid = int(died.stdout)

    assert postgres.start() is False

    assert postgres.pid == pid
    assert os.getsid(pid) == pid, "Ctrl-C in the launcher's terminal must not reach it"
    assert ask(postgres, "SELECT 1") == 1
    postgres.stop()
    until(lambda: not pid_exists(pid))


def test_of_two_who_start_the_same_new_folder_one_starts_and_one_adopts(make: Make) -> None:
    pair = [make(), make()]
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(EmbeddedPostgres.start, pair)) == [False, True]
    assert pair[0].pid == pair[1].pid is not None


def test_two_folders_run_at_once_and_know_nothing_of_each_other(make: Make) -> None:
    one, two = make("one"), make("two")
    one.start()
    two.start()
    assert one.create_database("only_here")
    assert one.pid != two.pid
    there: LiteralString = "SELECT count(*) FROM pg_database WHERE datname = 'only_here'"
    assert (ask(one, there), ask(two, there)) == (1, 0)
    one.stop()
    assert two.is_running and ask(two, "SELECT 1") == 1


def test_creating_a_database_again_or_four_times_at_once_is_no_error(make: Make) -> None:
    postgres = make()
    postgres.start()
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(postgres.create_database, ["server-1"] * 4)) == 1
    assert postgres.create_database("server-1") is False
    assert ask(postgres, "SELECT current_database()", "server-1") == "server-1"
    with pytest.raises(ValueError, match="-x"):
        postgres.create_database("-x")


def test_variables_of_other_postgresqls_do_not_lead_it_astray(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres = make()
    for name in ("PGDATA", "PGPORT", "PGSERVICE"):
        monkeypatch.setenv(name, "elsewhere")
    assert postgres.start() and postgres.create_database("here")


def test_it_is_durable_sorts_by_code_point_and_opens_no_port(make: Make) -> None:
    postgres = make()
    postgres.start()
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
    postgres.stop()
    postgres.start()

    names: list[LiteralString] = ["fsync", "synchronous_commit", "full_page_writes"]
    assert [ask(postgres, "SHOW " + name) for name in names] == ["on"] * 3
    assert ask(postgres, "SHOW listen_addresses") == ""
    assert ask(postgres, "SHOW max_connections") == "200"
    assert ask(postgres, "SHOW server_encoding") == "UTF8"
    assert ask(postgres, "SELECT 'Z' < 'a' AND 'z' < 'ä' AND 'ｚ' < '😀'") is True


def test_an_initdb_that_was_cut_off_is_done_again(make: Make) -> None:
    postgres = make()
    (postgres.folder / "data.unfinished").mkdir(parents=True)
    (postgres.folder / "data.unfinished" / "PG_VERSION").write_text("18\n")
    postgres.start()
    assert "data.unfinished" not in names_in(postgres.folder)


def test_data_of_another_major_version_are_refused_by_name(make: Make) -> None:
    postgres = make()
    (postgres.folder / "data").mkdir(parents=True, mode=0o700)
    (postgres.folder / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(PostgresUnavailable) as refused:
        postgres.start()
    assert "PostgreSQL 9," in str(refused.value)
    assert f"PostgreSQL {find_binaries().major}." in str(refused.value)
    assert "pg_upgrade" in refused.value.next_step


def test_a_failed_start_shows_the_log_and_leaves_no_socket_folder(make: Make) -> None:
    postgres = make("deep/" * 30)
    postgres.start()
    sockets = socket_folder(postgres)
    postgres.stop()
    control = postgres.folder / "data" / "global" / "pg_control"
    control.rename(control.with_name("elsewhere"))

    with pytest.raises(PostgresUnavailable, match="could not find the database system"):
        postgres.start()

    assert not postgres.is_running and not sockets.exists()


def test_a_start_that_takes_too_long_is_reported_and_can_be_waited_for_again(make: Make) -> None:
    hasty, patient = make(config=PostgresConfig(start_limit_s=0.0)), make()
    with pytest.raises(PostgresUnavailable, match="not ready after 0 s"):
        hasty.start()
    until(lambda: hasty.is_running)
    assert patient.start() is False
    assert ask(patient, "SELECT 1") == 1


@pytest.mark.slow
def test_a_postmaster_that_ignores_the_fast_shutdown_is_stopped_all_the_same(make: Make) -> None:
    postgres = make(config=PostgresConfig(stop_limit_s=0.5))
    postgres.start()
    query: LiteralString = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
    checkpointer = ask(postgres, query)
    assert isinstance(checkpointer, int)
    os.kill(checkpointer, signal.SIGSTOP)  # so the shutdown checkpoint never ends
    patient = make(config=PostgresConfig(stop_limit_s=20.0))
    with pytest.raises(PostgresUnavailable, match="does not end"):
        postgres.stop()
    patient.stop()
    assert processes_on(postgres.folder / "data") == []


def test_without_the_wheel_it_says_what_to_install() -> None:
    with pytest.raises(PostgresUnavailable, match=r"pip install 'utuple\[server\]'"):
        find_binaries("no_such_wheel")


@needs_root
def test_root_needs_no_other_user_where_user_namespaces_work(make: Make) -> None:
    if subprocess.run(["unshare", "--user", "true"], check=False).returncode != 0:
        pytest.skip("this kernel refuses user namespaces")
    postgres = make()
    postgres.start()
    owners = {path.stat().st_uid for path in [postgres.folder, *postgres.folder.rglob("*")]}
    assert owners == {0}


@needs_root
def test_an_ordinary_user_runs_it_too_and_is_told_of_a_folder_that_is_not_his(
    make: Make, place: Path
) -> None:
    os.chown(place, NOBODY, NOBODY)
    foreign = place / "foreign"
    foreign.mkdir(mode=0o700)
    postgres = make()
    ran = child(
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "postgres = EmbeddedPostgres(Path(sys.argv[1]))\n"
        "assert postgres.start() and postgres.create_database('mine')\n"
        "try: EmbeddedPostgres(Path(sys.argv[2])).start()\n"
        "except PostgresUnavailable as error: print(error)",
        postgres.folder,
        foreign,
    )
    assert ran.returncode == 0, ran.stderr
    assert "not writable" in ran.stdout and "chown" in ran.stdout
    assert (postgres.folder / "data").stat().st_uid == NOBODY
    assert ask(postgres, "SELECT 1", "mine") == 1
    postgres.stop()
    assert postgres.start(), "root goes on where that user stopped, as that user"
    assert (postgres.folder / "postgres.log").stat().st_uid == NOBODY


@needs_root
@needs_proc
def test_where_user_namespaces_are_refused_root_gives_a_new_folder_to_nobody(make: Make) -> None:
    # Root of a namespace that knows every user but allows no further namespaces, as in a container.
    folders = [make("near").folder, make("deep/" * 30).folder]
    process = python(
        "assert ctypes.CDLL(None).unshare(0x10000000) == 0\n"
        "print('map', flush=True); sys.stdin.readline()\n"
        "Path('/proc/sys/user/max_user_namespaces').write_text('0')\n"
        "for name in sys.argv[1:]:\n"
        "    folder = Path(name); folder.parent.mkdir(parents=True, exist_ok=True)\n"
        "    assert EmbeddedPostgres(folder).start()\n"
        "    assert EmbeddedPostgres(folder).create_database('mine')",
        *folders,
    )
    assert process.stdout is not None and process.stdout.readline() == "map\n"
    for table in ("uid_map", "gid_map"):
        Path(f"/proc/{process.pid}/{table}").write_text("0 0 65536")
    _, complaint = process.communicate("mapped\n", timeout=CHILD_LIMIT_S)
    assert process.returncode == 0, complaint
    for folder in folders:
        assert (folder / "data").stat().st_uid == NOBODY
        assert ask(EmbeddedPostgres(folder), "SELECT 1", "mine") == 1


@needs_root
def test_root_is_told_of_a_folder_that_postgres_cannot_reach(make: Make, place: Path) -> None:
    private = place / "private"
    private.mkdir(mode=0o700)
    os.chown(private, 12345, 12345)
    with pytest.raises(PostgresUnavailable, match="0700"):
        make("private/pg").start()


def test_the_log_is_set_aside_while_it_runs_and_written_on(make: Make) -> None:
    postgres = make(config=PostgresConfig(log_limit_bytes=2_000))
    postgres.start()
    log, old = postgres.folder / "postgres.log", postgres.folder / "postgres.log.old"

    def complain(what: str) -> None:
        with psycopg.connect(postgres.dsn()) as connection, pytest.raises(psycopg.Error):
            connection.execute(f"SELECT {what}".encode())
        until(lambda: what in log.read_text())

    complain("nonsense" * 400)
    postgres.set_aside_long_log()
    assert log.stat().st_size == 0 and "nonsense" in old.read_text()
    complain("more")
    postgres.set_aside_long_log()
    assert "more" in log.read_text() and "nonsense" in old.read_text()
