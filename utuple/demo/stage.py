"""The demo's clusters: each in a temporary folder, on free ports, and gone afterwards, also after Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import NoReturn

from utuple.cluster.line import first_table
from utuple.demo.scenario import TRUCK_LOAD
from utuple.local.detached import start_detached
from utuple.local.folder import ClusterFile, DataFolder
from utuple.local.layout import Layout
from utuple.local.ports import free_base_port
from utuple.local.processes import Process
from utuple.local.stopping import stop_cluster
from utuple.local.supervisor import StartFailed
from utuple.model.key import key_of

_FIRST_PORT, _LAST_PORT, _STEP = 10_000, 32_000, 30
"""Below the ports that systems give away by themselves."""
_ENDING = (signal.SIGTERM, signal.SIGHUP)


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
def stage(
    progress: Callable[[str], None], layout: Layout | None = None, knobs: Sequence[str] = ()
) -> Iterator[Stage]:
    """The usual cluster, or another, with knobs of its programs; at a port of its own in any case."""
    place = Path(tempfile.mkdtemp(prefix="utuple-demo-"))
    folder = DataFolder(place / "data")
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    for number in _ENDING:
        signal.signal(number, _end)
    try:
        # PostgreSQL does not run as root: whoever it runs as must get to its folder.
        place.chmod(0o755)
        layout = _at_free_port(layout or Layout())
        folder.make()
        folder.write_cluster(ClusterFile(layout, policy=tuple(knobs)))
        start_detached(folder, progress)
        yield Stage(folder, layout)
    finally:
        for number in before:
            signal.signal(number, signal.SIG_IGN)  # an impatient second Ctrl-C
        progress("stopping the cluster")
        try:
            stop_cluster(folder)
        finally:
            shutil.rmtree(place, ignore_errors=True)
            for number, handler in before.items():
                signal.signal(number, handler)


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _at_free_port(layout: Layout) -> Layout:
    offsets = [program.port - layout.port for program in layout.programs]
    bases = list(range(_FIRST_PORT, _LAST_PORT, _STEP))
    Random(os.getpid()).shuffle(bases)  # two demos at once begin at different places
    return replace(layout, port=free_base_port(offsets, bases))
