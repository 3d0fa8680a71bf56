"""Work that peers have made and that can wait: one piece in each turn of the event loop, in the order in which it came.

A server has one for all its connections. Without it each connection that is behind would do its piece in every turn, and so many
strangers would make every turn as many times longer; with it a turn is longer by one piece, however many they are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

GoOn = Callable[[], bool]
"""Does a piece, and says whether there is more."""


class Turns:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[GoOn] = deque()
        self._is_called = False

    def later(self, go_on: GoOn) -> None:
        self._waiting.append(go_on)
        self._call()

    def _call(self) -> None:
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon(self._take_one)

    def _take_one(self) -> None:
        self._is_called = False
        go_on = self._waiting.popleft()
        try:
            if go_on():
                self._waiting.append(go_on)
        finally:
            if self._waiting:
                self._call()
