"""`utuple.testing` in a user's own project: a pytest run from outside, and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.test_demo import processes_with
from tests.waiting import until

pytestmark = pytest.mark.slow
LIMIT_S = 240.0
TESTS = """
import os, pathlib
import pytest

@pytest.mark.parametrize("n", range(4))
def test_each_begins_with_an_empty_space(utuple_blocking_space, utuple_cluster, n):
    about = dict(subject="truck", type="load")
    assert list(utuple_blocking_space.read(**about)) == []
    utuple_blocking_space.emit(**about, address="a", data={"n": n}, lifetime_s=600)
    assert len(list(utuple_blocking_space.read(**about))) == 1
    pathlib.Path(os.environ["SEEN"], utuple_cluster.at).touch()

def test_a_watch_goes_on_though_the_space_is_emptied_under_it(utuple_blocking_space, utuple_cluster):
    about = dict(subject="open", type="load")
    with utuple_blocking_space.watch(**about) as events:
        for n in range(3):
            utuple_blocking_space.emit(**about, address="a", data={"n": n}, lifetime_s=600)
            assert [event.data["n"] for event in events.take(9, timeout_s=30)] == [n]
            utuple_cluster.empty()

def test_a_server_may_die_and_come_back(utuple_blocking_space, utuple_cluster):
    utuple_blocking_space.emit(subject="s", type="t", address="a", data={}, lifetime_s=600)
    utuple_cluster.kill("server-1")
    assert "server-1" in utuple_cluster.servers and utuple_cluster.log("server-1").exists()
    utuple_cluster.revive("server-1")
    assert len(list(utuple_blocking_space.read(subject="s", type="t"))) == 1
"""
WAITS = """
import time

def test_waits(utuple_cluster):
    print("ready", flush=True)
    time.sleep(600)
"""


def project(place: Path, tests: str) -> dict[str, str]:
    """A folder with these tests, and the environment to run them in: temporary folders lie in it, too."""
    for folder in (place, *list(place.parents)[:3]):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/tmp"):
            folder.chmod(0o755)
    for name in ("p", "t", "s"):
        (place / name).mkdir()
    (place / "p" / "test_own.py").write_text(tests)
    return {**os.environ, "TMPDIR": str(place / "t"), "SEEN": str(place / "s")}


def is_clean(place: Path) -> bool:
    left = [path for path in (place / "t").iterdir() if path.name.startswith("utuple-")]
    return not left and processes_with(str(place / "t")) == []


def test_a_users_suite_runs_on_clusters_of_its_own_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = tmp_path_factory.mktemp("u")
    environment = project(place, TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"],
        cwd=place / "p",
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((place / "s").iterdir())) == 2, "each worker has its own"
    assert is_clean(place)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_however_the_tests_end_their_cluster_ends_too(
    tmp_path_factory: pytest.TempPathFactory, number: signal.Signals
) -> None:
    place = tmp_path_factory.mktemp("u")
    environment = project(place, WAITS)
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"],
        cwd=place / "p",
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as tests:
        assert tests.stdout is not None
        try:
            assert any("ready" in line for line in tests.stdout)
            tests.send_signal(number)
            tests.wait(LIMIT_S)
        finally:
            tests.kill()
    until(lambda: is_clean(place), "nothing is left")


def test_who_does_not_use_it_pays_next_to_nothing() -> None:
    """What pytest imports at its start reaches none of the heavy parts."""
    heavy = "grpc psycopg sqlalchemy numpy utuple.local utuple.client".split()
    asked = f"import sys, utuple.testing.plugin; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
