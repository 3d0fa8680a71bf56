"""Keeps one program alive: starts it, or takes over one that still runs, and starts it again when it
dies. What it knows is in the folder, so the next supervisor can go on where this one was killed.

A program may also be killed or frozen on purpose, by a test or a demonstration; then it is meant to be down, and nobody starts
it again before `start` says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from utuple.local.folder import DataFolder, Started
from utuple.local.processes import KILL_LIMIT_S, STOP_LIMIT_S, Process, end, spawn, start_of
from utuple.runtime.backoff import Backoff

LOOK_S = 0.05
"""How often a program is looked at. A taken-over one is not our child, so nobody tells us."""

Say = Callable[[str], None]


async def until(condition: Callable[[], bool]) -> None:
    """Processes that are not our children raise no event: they are looked at."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)


@dataclass
class Keeper:
    name: str
    command: list[str]
    folder: DataFolder
    say: Say
    environment: Mapping[str, str] = field(default_factory=dict)
    """What other users of the machine must not see: a database URL with its password."""
    at_first: tuple[str, ...] = ()
    """More options while it is new; a program that was started with them is the same as one without."""
    next_life: Callable[[int], list[str]] | None = None
    """The command of each life, counted from 1, where they differ."""
    backoff: Backoff = field(default_factory=Backoff)
    lives: int = 0
    deaths: int = 0
    """Those that nobody ordered."""
    is_held: bool = False
    """It is meant to be down."""
    _process: Process | None = None
    _child: subprocess.Popen[bytes] | None = None
    _is_noted: bool = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def exit_code(self) -> int | None:
        return self._child.returncode if self._child is not None else None

    @property
    def is_alive(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return self._process is not None and self._process.is_alive

    def take_over(self) -> bool:
        """A program left by a killed supervisor goes on if it is what we would start; else it ends."""
        left = self.folder.started(self.name)
        if left is None:
            return False
        if left.command == self._noted_command:
            self._process, self._is_noted = left.process, True
            return True
        end([left.process])
        return False

    @property
    def _noted_command(self) -> list[str]:
        """What two programs must share to be the same: the secret part by its digest only."""
        secret = repr(sorted(self.environment.items())).encode()
        return [*self.command, hashlib.blake2b(secret, digest_size=8).hexdigest()]

    async def keep(self) -> None:
        """Until cancelled. It raises what a full disk raises, and is to be called again then: a program that runs is
        not started twice, and what could not be noted is noted when there is room."""
        while True:
            await until(lambda: not self.is_held)
            began_s = time.monotonic()
            if self._process is None:
                self._start()
            if not self._is_noted:
                self._note()
            # Between two looks it may have been killed on purpose and started again: then it lives, and all is well.
            await until(lambda: not self.is_alive)
            if self.is_held:
                continue
            how = _died(self._child)
            self._process = self._child = None
            self.deaths += 1
            self.backoff = self.backoff.after_death(time.monotonic() - began_s)
            wait_s = self.backoff.wait_s
            self.say(f"{self.name} {how}; starting it again in {wait_s:g} s")
            await asyncio.sleep(wait_s)

    async def start(self) -> None:
        """At once, if it was killed on purpose; `keep` keeps it from then on."""
        if not self.is_alive:
            self._start()
            self._note()
        self.backoff = Backoff()
        self.is_held = False

    def kill(self) -> None:
        """With -9; it is gone when this returns, and stays dead until it is started."""
        self.is_held = True
        self.signal(signal.SIGKILL)
        if self._child is not None:
            self._child.wait()  # at once: a killed process has no say in it

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def dismiss(self) -> None:
        """Asked to end in order; it is not started again."""
        self.is_held = True
        self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_alive:
            self._process.signal(number)

    async def ended(self, limit_s: float) -> bool:
        """Whether it has, within the limit."""
        with suppress(TimeoutError):
            await asyncio.wait_for(until(lambda: not self.is_alive), limit_s)
        return not self.is_alive

    async def stop(self) -> None:
        self.is_held = True
        self.thaw()
        for number, limit_s in ((signal.SIGTERM, STOP_LIMIT_S), (signal.SIGKILL, KILL_LIMIT_S)):
            self.signal(number)
            if await self.ended(limit_s):
                break
        if not self.is_alive:
            self._process = self._child = None
            self.folder.forget_run(self.name)

    def _start(self) -> None:
        self.folder.set_aside_long_log(self.name)
        self._is_noted = False
        self.lives += 1
        if self.next_life is not None:
            self.command = self.next_life(self.lives)
        child = spawn(
            [*self.command, *self.at_first],
            self.folder.log(self.name),
            self.folder.path,
            self.environment,
        )
        # A child that is dead already has no start time; its pid is ours until it is waited for.
        self._child = child
        self._process = Process(child.pid, start_of(child.pid) or "")
        self.say(f"{self.name} started, pid {child.pid}")

    def _note(self) -> None:
        assert self._process is not None
        self.folder.note_started(self.name, Started(self._process, self._noted_command))
        self._is_noted = True


def _died(child: subprocess.Popen[bytes] | None) -> str:
    if child is None or child.returncode is None:
        return "is gone"
    if child.returncode < 0:
        return f"was killed by {signal.Signals(-child.returncode).name}"
    return f"ended with exit code {child.returncode}"
