"""A Spark session that is quiet, quick and stays on this machine unless told otherwise.

What the JVM says goes into a file of the session's own folder and is shown only when the session cannot start.
A cluster given by `--master` gets the code it needs sent along; its Python needs numpy, pandas and pyarrow.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ops_sim.spark.interrupt import uninterrupted, waited_for
from ops_sim.spark.java import find_java
from utuple.errors import InvalidInput, UTupleError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
_JVM_END_LIMIT_S = 10.0
_LOG_TAIL = 8
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_ARRAYS = {"MALLOC_MMAP_THRESHOLD_": str(2**28), "MALLOC_TRIM_THRESHOLD_": str(2**29)}
"""Of the kernels' processes: memory of arrays is used again. Given back to the system after each one, as is usual from some
megabytes on, it comes back page by page, which takes longer than what is computed."""
_PARTS = ("pyspark", "pandas", "pyarrow")
_SHIPPED = ("ops_sim", "load_monitor", "utuple/model", "utuple/cluster", "utuple/errors.py")
"""What runs on executors, from the folder that holds ops_sim. `utuple/__init__.py` goes along empty: the real
one is the client SDK, which wants gRPC."""


Found = TypeVar("Found")


class SparkUnavailable(UTupleError):
    """No Spark session; the message says why."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    master: str = "local[*]"
    driver_memory_mb: int = 2048
    """The JVM's heap; in local mode it is the executors', too."""
    shuffle_partitions: int = 8
    """A plan's tables are small once they are summed up; 200, Spark's own, is for terabytes."""

    is_quick: bool = True
    """The JVM compiles once and lightly: half the processor time of a short plan, whose work is done in Python.
    Not for hours of Spark's own sorting and joining."""

    def __post_init__(self) -> None:
        if not self.master.startswith(("local", "spark://", "yarn", "k8s://")):
            rule = "must be local[N], local-cluster[N,cores,MB], spark://HOST:PORT, yarn or k8s://…"
            raise InvalidInput("--master", self.master, rule)
        for name in ("driver_memory_mb", "shuffle_partitions"):
            if getattr(self, name) < 1:
                raise InvalidInput(name, getattr(self, name), "must be at least 1")

    @property
    def is_one_process(self) -> bool:
        return self.master.startswith("local") and not self.master.startswith("local-cluster")

    @property
    def is_this_machine(self) -> bool:
        hosts = (f"spark://{LOOPBACK}:", "spark://localhost:")
        return self.master.startswith(("local", *hosts))


@contextmanager
def spark_session(config: SessionConfig | None = None) -> Iterator[SparkSession]:
    """The one session of this process. When this ends, so has its JVM, and its folder is gone.
    What may be interrupted goes through `run`."""
    config = config or SessionConfig()
    for part in _PARTS:
        if importlib.util.find_spec(part) is None:
            raise SparkUnavailable(f"planning needs {part}: pip install 'utuple[server,sim]'")
    place = Path(tempfile.mkdtemp(prefix="utuple-plan-"))
    try:
        environment = _environment(config, place)
        with _set(environment), (place / "spark.log").open("wb") as log:
            try:
                yield waited_for(lambda: _start(config, place, log.fileno()), lambda: None)
            finally:
                with uninterrupted():
                    _stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run(spark: SparkSession, work: Callable[[], Found]) -> Found:
    """Ctrl-C cancels its jobs."""
    return waited_for(work, spark.sparkContext.cancelAllJobs)


def on_spark(config: SessionConfig, work: Callable[[SparkSession], Found]) -> Found:
    """All of it in a session of its own."""
    with spark_session(config) as spark:
        return run(spark, lambda: work(spark))


def _environment(config: SessionConfig, place: Path) -> dict[str, str]:
    import pyspark

    found = {
        "JAVA_HOME": str(find_java(os.environ).launched_from(place)),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),  # else two scripts look for it
        "PYSPARK_PYTHON": sys.executable,
        # Of the JVM that only puts the command together.
        "SPARK_LAUNCHER_OPTS": _QUICK,
        **_ARRAYS,
    }
    if config.is_this_machine:
        found["SPARK_LOCAL_IP"] = LOOPBACK
    return found


def _settings(config: SessionConfig, place: Path) -> dict[str, str]:
    found = {
        "spark.master": config.master,
        "spark.app.name": "utuple plan",
        "spark.driver.memory": f"{config.driver_memory_mb}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(place / "blocks"),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(config.shuffle_partitions),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # An error of a kernel is told as Python told it, without Java's own trace.
        "spark.sql.pyspark.jvmStacktrace.enabled": "false",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        # A folder of Parquet files holds Parquet files.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    found |= {f"spark.executorEnv.{name}": value for name, value in _ARRAYS.items()}
    if config.is_this_machine:
        found |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    if config.is_quick:
        found |= {
            "spark.driver.extraJavaOptions": _QUICK,
            "spark.executor.extraJavaOptions": _QUICK,
        }
    return found


def _start(config: SessionConfig, place: Path, log: int) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False)
    for name, value in _settings(config, place).items():
        conf.set(name, value)
    try:
        gateway = launch_gateway(  # type: ignore[no-untyped-call]
            conf, {"stdout": log, "stderr": log}
        )
        context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, Py4JError) as error:
        raise SparkUnavailable(_why(config, place, error)) from None
    if not config.is_one_process:
        context.addPyFile(str(_zip_of_code(place)))
    return SparkSession(context)


def _stop() -> None:
    """Also the JVM, so that another session of this process may have other settings."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if (spark := SparkSession._instantiatedSession) is not None:
        spark.stop()
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # which is how it learns that we are gone
        gateway.proc.wait(_JVM_END_LIMIT_S)


def _why(config: SessionConfig, place: Path, error: Exception) -> str:
    said = (place / "spark.log").read_text(errors="replace").splitlines()
    tail = "\n".join(line for line in said if line.strip())[-2000:].splitlines()[-_LOG_TAIL:]
    return f"Spark did not start with --master {config.master}: " + "\n".join(
        [str(error).splitlines()[0], *tail]
    )


def _zip_of_code(place: Path) -> Path:
    root = Path(__file__).resolve().parents[2]
    made = place / "ops_sim_code.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("utuple/__init__.py", "")
        for part in _SHIPPED:
            found = root / part
            for path in [found] if found.is_file() else sorted(found.rglob("*.py")):
                archive.write(path, path.relative_to(root).as_posix())
    return made


@contextmanager
def _set(changes: Mapping[str, str]) -> Iterator[None]:
    """Spark is told by the environment; ours is given back as it was."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
