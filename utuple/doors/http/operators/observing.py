"""One observer looks at the cluster for all pages that are open: what it costs does not depend on how many there are.

Each look becomes bytes once, and every page is sent those. A page that takes slowly gets the newest state when it takes
again, not every state in between; what lies ready for it is never more than one of each part.

On a secured cluster it looks for one of the operators whose pages are open, and not at all while there is none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import utuple
from utuple.admin.snapshot import Snapshot, snapshot_of
from utuple.doors.http.config import Config
from utuple.doors.http.operators.parts import changed_lines, parts_of, readers_part, sample_of
from utuple.doors.http.problems import encoded
from utuple.doors.http.streaming import event
from utuple.doors.visitors import Visitor
from utuple.runtime.clock import monotonic_s, now_us
from utuple.security.own import ON_BEHALF

LINES = "lines"


@dataclass
class Part:
    """One part of a page: its newest state, and for the table also what changed last."""

    version: int = 0
    state: Any = None
    whole: bytes = b""
    patch: bytes = b""
    """From the version before to this one; empty: send it whole."""

    def put(self, name: str, state: Any) -> None:
        if state == self.state:
            return
        patch = b""
        if name == LINES and self.state is not None:
            patch = event(encoded(changed_lines(self.state, state)), name="patch")
        self.version += 1
        self.state, self.patch = state, patch
        self.whole = event(encoded(state), name=name)

    def since(self, version: int) -> bytes:
        if self.patch and version == self.version - 1:
            return self.patch
        return self.whole


@dataclass
class Observer:
    config: Config
    parts: dict[str, Part] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    is_secured: bool = False
    pages: int = 0
    _visitors: list[Visitor] = field(default_factory=list)
    """Of the pages that are open; the newest is the last."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _opened: asyncio.Event = field(default_factory=asyncio.Event)
    _history: deque[tuple[float, dict[str, list[float]]]] = field(default_factory=deque)

    async def run(self) -> None:
        """Until cancelled."""
        limits = self.config.limits
        readers_s = -limits.readers_look_s
        while True:
            began_s = monotonic_s()
            with_readers = self.pages > 0 and began_s - readers_s >= limits.readers_look_s
            if with_readers:
                readers_s = began_s
            if self._visitors or not self.is_secured:
                await self._look(brief=not with_readers)
            pause_s = limits.look_s if self.pages else limits.look_idle_s
            await self._pause(max(0.0, began_s + pause_s - monotonic_s()))

    async def _pause(self, pause_s: float) -> None:
        """A page that opens is not kept waiting."""
        self._opened.clear()
        try:
            async with asyncio.timeout(pause_s):
                await self._opened.wait()
        except TimeoutError:
            """Time for the next look."""

    async def _look(self, *, brief: bool) -> None:
        if self._visitors:
            ON_BEHALF.set(self._visitors[-1].shown)
        try:
            snapshot = await snapshot_of(self.config.managers, brief=brief)
        except utuple.UTupleError as error:
            self._put({"cluster": {"answers": False, "why": str(error), "data": self.config.data}})
            return
        self.snapshot = snapshot
        at_s = now_us() / 1e6
        sample = sample_of(snapshot.servers)
        self._history.append((round(at_s, 2), sample))
        while len(self._history) > self.config.limits.history:
            self._history.popleft()
        parts = parts_of(snapshot)
        if not brief:
            parts["readers"] = readers_part(snapshot.servers)
        self._put(
            {
                "cluster": {"answers": True, "why": "", "data": self.config.data},
                **parts,
                "sample": [round(at_s, 2), sample],
            }
        )

    def _put(self, parts: dict[str, Any]) -> None:
        for name, state in parts.items():
            self.parts.setdefault(name, Part()).put(name, state)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # --- a page ------------------------------------------------------------------------------------

    async def page(self, visitor: Visitor | None = None) -> AsyncIterator[bytes]:
        """What a page is sent: everything, then what changes."""
        self.pages += 1
        if visitor is not None:
            self._visitors.append(visitor)
        try:
            if self.pages == 1:
                self._opened.set()  # look now, and often
            sent: dict[str, int] = {}
            if self._history:
                yield event(encoded(list(self._history)), name="history")
            while True:
                changed = self._changed
                pieces = []
                for name, part in self.parts.items():
                    if sent.get(name) != part.version:
                        pieces.append(part.since(sent.get(name, 0)))
                        sent[name] = part.version
                if pieces:
                    yield b"".join(pieces)
                await changed.wait()
        finally:
            self.pages -= 1
            if visitor is not None:
                self._visitors.remove(visitor)
