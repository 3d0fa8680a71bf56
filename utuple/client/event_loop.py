"""The event loop a space belongs to: the one it is first used in. Its connections and tasks live there and nowhere else."""

from __future__ import annotations

import asyncio

from utuple.errors import WrongContext


class Home:
    __slots__ = ("_loop",)

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def check(self) -> None:
        """Raises in any other loop, at once: there an answer would never be heard of."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            ended = ", which has ended" if self._loop.is_closed() else ""
            raise WrongContext(
                f"this space belongs to another event loop{ended}: connect one in each `asyncio.run`, or use "
                "`utuple.blocking`, whose spaces serve any thread"
            )
        self._loop = loop
