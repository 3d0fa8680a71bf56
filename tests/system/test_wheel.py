"""What `pip install` gives a user: the wheel is built and used from outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 120.0


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files in a folder, as pip would unpack them."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=LIMIT_S)
    (wheel,) = place.glob("utuple-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(place / "site")
    return place / "site"


def run(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Without the checkout: -S leaves out what .pth files add, and with them the editable install."""
    parts = sysconfig.get_paths()["purelib"]
    return subprocess.run(
        [sys.executable, "-S", "-P", *arguments],
        env={**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{parts}"},
        cwd=installed,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def test_the_wheel_carries_the_product_and_neither_chaos_nor_benchmarks(installed: Path) -> None:
    packages = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert packages == {"utuple", "assignment_manager", "load_monitor", "sca_server", "ops_sim"}
    names = {path.stem for path in installed.rglob("*.py")}
    assert names.isdisjoint({"chaos", "proxy", "ground", "retelling"})
    assert (installed / "utuple" / "py.typed").exists()


def test_the_face_is_imported_from_a_plain_install(installed: Path) -> None:
    done = run(installed, "-c", "import utuple; print(utuple.__file__, utuple.connect.__name__)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(installed / "utuple" / "__init__.py"), "connect"]


@pytest.mark.parametrize(
    "words",
    [["bench", "ingest", "--quick"], ["bench", "--help"], ["chaos", "--minutes", "1"]],
    ids=" ".join,
)
def test_the_harness_says_in_one_line_where_it_lives(installed: Path, words: list[str]) -> None:
    done = run(installed, "-m", "utuple.cli.main", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"utuple: `utuple {words[0]}` lives in the source checkout")
    assert "make venv" in done.stderr and done.stderr.count("\n") == 1


def test_every_other_command_is_there(installed: Path) -> None:
    done = run(installed, "-m", "utuple.cli.main", "--help")
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ("up", "down", "status", "demo", "plan", "emit"))
