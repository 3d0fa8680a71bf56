"""The demo's cluster: in a temporary folder, on free ports, and gone afterwards, also after Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NoReturn

from utuple.cli.demo.scenario import TRUCK_LOAD
from utuple.cli.local.detached import start_detached
from utuple.cli.local.folder import ClusterFile, DataFolder
from utuple.cli.local.layout import Layout
from utuple.cli.local.ports import free_base_port
from utuple.cli.local.processes import Process
from utuple.cli.local.stopping import stop_cluster
from utuple.cli.local.supervisor import StartFailed
from utuple.cluster.line import first_table
from utuple.model.key import key_of

_FIRST_PORT, _LAST_PORT, _STEP = 10_000, 32_000, 30
"""Below the ports that systems give away by themselves."""


@dataclass(slots=True)
class Stage:
    folder: DataFolder
    layout: Layout
    _killed: Process | None = None

    @property
    def addresses(self) -> list[str]:
        return self.layout.manager_addresses

    @property
    def _victim(self) -> str:
        """The server that has the trucks."""
        key = key_of(*TRUCK_LOAD)
        lines = first_table(self.layout.server_names)
        return next(line.home for line in lines if key in line.section)

    def kill(self) -> str:
        """With -9; its name. The supervisor starts it again."""
        started = self.folder.started(self._victim)
        if started is None:
            raise StartFailed(f"{self._victim} does not run: see {self.folder.log(self._victim)}")
        self._killed = started.process
        started.process.signal(signal.SIGKILL)
        return self._victim

    @property
    def is_back(self) -> bool:
        started = self.folder.started(self._victim)
        return self._killed is not None and started is not None and started.process != self._killed


@contextmanager
def stage(progress: Callable[[str], None]) -> Iterator[Stage]:
    place = Path(tempfile.mkdtemp(prefix="utuple-demo-"))
    folder = DataFolder(place / "data")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        # PostgreSQL does not run as root: whoever it runs as must get to its folder.
        place.chmod(0o755)
        layout = Layout(port=_free_port())
        folder.make()
        folder.write_cluster(ClusterFile(layout))
        start_detached(folder, progress)
        yield Stage(folder, layout)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # an impatient second Ctrl-C
        progress("stopping the cluster")
        try:
            stop_cluster(folder)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _free_port() -> int:
    offsets = [program.port - Layout().port for program in Layout().programs]
    bases = list(range(_FIRST_PORT, _LAST_PORT, _STEP))
    Random(os.getpid()).shuffle(bases)  # two demos at once begin at different places
    return free_base_port(offsets, bases)
