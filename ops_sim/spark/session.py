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
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ops_sim.spark.interrupt import interruptible, uninterrupted
from ops_sim.spark.java import find_java
from utuple.errors import InvalidInput, UTupleError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
_JVM_END_LIMIT_S = 10.0
_LOG_TAIL = 8
_DRIVER_MEMORY = "2048m"
"""The JVM's heap; in local mode it is the executors', too."""
_SHUFFLE_PARTITIONS = "8"
"""A plan's tables are small once they are summed up; 200, Spark's own default, is for terabytes."""
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The JVM compiles once and lightly: half the processor time of a short plan, whose work is done in Python. It would be
wrong for hours of Spark's own sorting and joining."""
_ARRAYS = {"MALLOC_MMAP_THRESHOLD_": str(2**28), "MALLOC_TRIM_THRESHOLD_": str(2**29)}
"""For the processes that run the kernel: keep the memory of arrays for the next one. By default arrays of some megabytes are
given back to the system and come back page by page, which takes longer than the computation."""
_PARTS = ("pyspark", "pandas", "pyarrow")
_SHIPPED = ("ops_sim", "load_monitor", "utuple/model", "utuple/cluster", "utuple/errors.py")
"""What runs on executors, from the folder that holds ops_sim. `utuple/__init__.py` goes along empty: the real
one is the client SDK, which wants gRPC."""


Found = TypeVar("Found")


class SparkUnavailable(UTupleError):
    """No Spark session; the message says why."""


def check_master(master: str) -> None:
    if not master.startswith(("local", "spark://", "yarn", "k8s://")):
        rule = "must be local[N], local-cluster[N,cores,MB], spark://HOST:PORT, yarn or k8s://…"
        raise InvalidInput("--master", master, rule)


def _is_one_process(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


def _is_this_machine(master: str) -> bool:
    return master.startswith(("local", f"spark://{LOOPBACK}:", "spark://localhost:"))


@contextmanager
def spark_session(master: str) -> Iterator[SparkSession]:
    """The one session of this process. When this ends, so has its JVM, and its folder is gone.
    What may be interrupted goes through `run`."""
    check_master(master)
    for part in _PARTS:
        if importlib.util.find_spec(part) is None:
            raise SparkUnavailable(f"planning needs {part}: pip install 'utuple[server,sim]'")
    place = Path(tempfile.mkdtemp(prefix="utuple-plan-"))
    try:
        environment = _environment(master, place)
        with _set(environment), (place / "spark.log").open("wb") as log:
            try:
                yield interruptible(lambda: _start(master, place, log.fileno()), lambda: None)
            finally:
                with uninterrupted():
                    _stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run(spark: SparkSession, work: Callable[[], Found]) -> Found:
    """Ctrl-C cancels its jobs."""
    return interruptible(work, spark.sparkContext.cancelAllJobs)


def on_spark(master: str, work: Callable[[SparkSession], Found]) -> Found:
    """All of it in a session of its own."""
    with spark_session(master) as spark:
        return run(spark, lambda: work(spark))


def _environment(master: str, place: Path) -> dict[str, str]:
    import pyspark

    found = {
        "JAVA_HOME": str(find_java(os.environ).launched_from(place)),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),  # else two scripts look for it
        "PYSPARK_PYTHON": sys.executable,
        # Of the JVM that only puts the command together.
        "SPARK_LAUNCHER_OPTS": _QUICK,
        **_ARRAYS,
    }
    if _is_this_machine(master):
        found["SPARK_LOCAL_IP"] = LOOPBACK
    return found


def _settings(master: str, place: Path) -> dict[str, str]:
    found = {
        "spark.master": master,
        "spark.app.name": "utuple plan",
        "spark.driver.memory": _DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": _QUICK,
        "spark.executor.extraJavaOptions": _QUICK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(place / "blocks"),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": _SHUFFLE_PARTITIONS,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # An error of a kernel is told as Python told it, without Java's own trace.
        "spark.sql.pyspark.jvmStacktrace.enabled": "false",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        # A folder of Parquet files holds Parquet files.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    found |= {f"spark.executorEnv.{name}": value for name, value in _ARRAYS.items()}
    if _is_this_machine(master):
        found |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return found


def _start(master: str, place: Path, log: int) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False)
    for name, value in _settings(master, place).items():
        conf.set(name, value)
    try:
        gateway = launch_gateway(  # type: ignore[no-untyped-call]
            conf, {"stdout": log, "stderr": log}
        )
        context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, Py4JError) as error:
        raise SparkUnavailable(_why(master, place, error)) from None
    if not _is_one_process(master):
        context.addPyFile(str(_zip_of_code(place)))
    return SparkSession(context)


def _stop() -> None:
    """Ends the JVM as well, so that another session of this process may have another master."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if (spark := SparkSession._instantiatedSession) is not None:
        spark.stop()
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # which is how it learns that we are gone
        gateway.proc.wait(_JVM_END_LIMIT_S)


def _why(master: str, place: Path, error: Exception) -> str:
    said = (place / "spark.log").read_text(errors="replace").splitlines()
    tail = "\n".join(line for line in said if line.strip())[-2000:].splitlines()[-_LOG_TAIL:]
    return f"Spark did not start with --master {master}: " + "\n".join(
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
