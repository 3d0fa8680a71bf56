"""`utuple plan` from outside: real servers measured, Spark without Java and on other masters, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyspark
import pytest

from ops_sim.cost.catalogue import cost_named
from ops_sim.spark.java import find_java
from tests.system.cluster import COMMAND_LIMIT_S, free_port
from tests.waiting import until
from utuple.cli.outcome import INTERRUPTED

pytestmark = pytest.mark.slow
PLAN = [sys.executable, "-P", "-m", "utuple.cli.main", "plan"]
LOOPBACK = "127.0.0.1"


def planned(*arguments: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    done = subprocess.run(
        [*PLAN, *arguments, "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def assert_is_section_4_2(said: dict[str, Any]) -> None:
    assert said["servers_day_1000"] == 49
    bought = [(purchase["day"], purchase["servers"]) for purchase in said["purchases"]]
    assert bought == [(184, 3), (257, 4), (354, 5), (476, 7), (646, 9), (865, 11)]
    assert round(said["memory_mean"], 3) == 0.751
    assert round(said["processing_mean"], 3) == 0.666


def test_a_calibration_measures_a_real_server_and_plans_can_use_it() -> None:
    with tempfile.TemporaryDirectory(prefix="utuple-cost-") as folder:
        said = planned("calibrate", "--quick", "--out", folder)
        model = cost_named(str(Path(folder) / "cost.json"))
        assert {"report.html", "page.png", "lines.csv"} <= set(os.listdir(folder))
    assert model.to_json() == said["model"]
    assert model.quick
    assert model.eas_max == 1_000
    assert model.ea_s > 0
    assert 50 < model.ea_bytes < 5_000
    assert model.ef_bytes >= 0
    assert model.cf_s > 0
    assert model.cf_bytes > 0
    assert said["quick"] is True


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has no Java but the wheel's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in filter(os.path.isdir, os.environ["PATH"].split(os.pathsep)):
        for name in os.listdir(folder):
            if not name.startswith("java") and not (programs / name).is_symlink():
                (programs / name).symlink_to(Path(folder) / name)
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {**kept, "PATH": str(programs)}


def test_with_no_java_on_the_machine_section_4_2_comes_out(without_java: dict[str, str]) -> None:
    assert_is_section_4_2(planned("paper", environment=without_java))


@pytest.mark.long
def test_on_executors_that_are_processes_of_their_own_the_result_is_the_same() -> None:
    assert_is_section_4_2(planned("paper", "--master", "local-cluster[2,1,1024]"))


@pytest.mark.long
def test_on_a_standalone_master_the_result_is_the_same(tmp_path: Path) -> None:
    with standalone(tmp_path) as master:
        assert_is_section_4_2(planned("paper", "--master", master))


@contextmanager
def standalone(place: Path) -> Iterator[str]:
    """A Spark master with one worker, on loopback; its address."""
    port = free_port()
    master = f"spark://{LOOPBACK}:{port}"
    own = ["--host", LOOPBACK, "--webui-port", "0"]
    with spark_program(place, "master.Master", *own, "--port", str(port)) as log:
        until(lambda: "I have been elected leader" in log.read_text(), "the master")
        worker = [*own, "--cores", "2", "--memory", "1200m", "--work-dir", str(place / "work")]
        with spark_program(place, "worker.Worker", *worker, master):
            until(lambda: "Registering worker" in log.read_text(), "the worker")
            yield master


@contextmanager
def spark_program(place: Path, name: str, *arguments: str) -> Iterator[Path]:
    """One of Spark's own, from the wheel; what it says goes to a file."""
    home = Path(pyspark.__file__).parent
    made = place / name
    made.mkdir()
    java = find_java(os.environ).launched_from(made)
    spark = {"SPARK_HOME": str(home), "JAVA_HOME": str(java), "SPARK_LOCAL_IP": LOOPBACK}
    log = made / "log"
    with log.open("wb") as said:
        program = started(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
            {**os.environ, **spark},
            said,
        )
    try:
        yield log
    finally:
        os.killpg(program.pid, signal.SIGTERM)
        program.wait(COMMAND_LIMIT_S)


def started(
    command: list[str], environment: Mapping[str, str], said: IO[bytes]
) -> subprocess.Popen[bytes]:
    """In a process group of its own, as a terminal starts it."""
    return subprocess.Popen(
        command, env=environment, stdout=said, stderr=said, start_new_session=True
    )


SWEEP = """
[plan]
name = "long enough to interrupt"
days = 100
worlds = 2000000
[[demand]]
name = "unsure"
growth_spread = 0.2
[[policy]]
name = "paper"
"""


@pytest.mark.long
def test_ctrl_c_leaves_the_waves_that_are_finished_and_plans_with_them(tmp_path: Path) -> None:
    file, out = tmp_path / "plan.toml", tmp_path / "out"
    file.write_text(SWEEP)
    with (tmp_path / "said").open("wb") as said:
        sweep = started([*PLAN, "sweep", str(file), "--out", str(out)], os.environ, said)
    try:
        until(
            lambda: (out / "scenarios" / "wave=0001").is_dir(), "the second wave", COMMAND_LIMIT_S
        )
        os.killpg(sweep.pid, signal.SIGINT)  # as Ctrl-C does: to all of them
        assert sweep.wait(COMMAND_LIMIT_S) == INTERRUPTED, (tmp_path / "said").read_text()
    finally:
        if sweep.poll() is None:
            os.killpg(sweep.pid, signal.SIGKILL)
    plan = json.loads((out / "plan.json").read_text())
    assert plan["interrupted"] is True
    assert 0 < plan["scenarios"] < 2_000_000
    assert (out / "report.html").is_file()
