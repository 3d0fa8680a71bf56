"""Calls that go on though their callers were cancelled, and may register a formal yet.

Registrations and goodbyes travel by streams of their own. A goodbye that overtook a registration would be answered by a server
that does not know the formal yet, and the formal be registered after it, for nobody. So whoever says goodbye waits for these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


class CutShort:
    def __init__(self) -> None:
        self._calls: dict[bytes, set[asyncio.Task[Any]]] = {}
        """By formal."""

    def note(self, formals: Iterable[bytes], call: asyncio.Task[Any]) -> None:
        concerned = list(formals)

        def ended(_: object) -> None:
            """One call may hold the same formal several times: a reader's name may be opened again while an earlier
            opening is on its way. Each that was cut short asks to be told, so whoever is told second finds that the
            first has removed the call already."""
            for formal in concerned:
                calls = self._calls.get(formal, set())
                calls.discard(call)
                if not calls:
                    self._calls.pop(formal, None)

        for formal in concerned:
            self._calls.setdefault(formal, set()).add(call)
        call.add_done_callback(ended)

    async def settled(self, formal: bytes, limit_s: float) -> None:
        """Until every registration of this formal that was cut short has been answered or has failed, or for so long."""
        calls = self._calls.get(formal)
        if calls:
            await asyncio.wait(list(calls), timeout=limit_s)
