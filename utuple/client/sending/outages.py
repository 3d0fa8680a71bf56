"""Servers that cannot be reached: one command knocks again and again, the others wait for it.

Without this each of them would knock by itself. A program that sends a thousand commands a second has ten thousand that wait after
an outage of ten seconds; their attempts, a call each, kept it so busy that it did not hear the server when that was back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from utuple.errors import Unavailable


@dataclass(frozen=True, slots=True, eq=False)
class _Outage:
    knocker: object
    reason: str
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Outages:
    def __init__(self, stuck_s: float) -> None:
        """A call that has not failed for so long has reached its server, though that may not answer yet."""
        self._stuck_s = stuck_s
        self._known: dict[str, _Outage] = {}

    async def others_knock(self, server: str, own: object, deadline_s: float) -> bool:
        """Wait while somebody else tries to reach this server. False: nobody does. Raises Unavailable if that takes too long."""
        outage = self._known.get(server)
        if outage is None or outage.knocker is own:
            return False
        try:
            async with asyncio.timeout_at(deadline_s):
                await outage.over.wait()
        except TimeoutError:
            raise Unavailable(outage.reason) from None
        return True

    @contextmanager
    def attempt(self, server: str, own: object) -> Iterator[None]:
        """Around a call. The first that does not reach its server is the one that knocks; what else becomes of its next call is the
        end of the outage."""
        outage = self._known.get(server)
        if outage is None:
            try:
                yield
            except Unavailable as error:
                self._known.setdefault(server, _Outage(own, str(error)))
                raise
            return
        stuck = asyncio.get_running_loop().call_later(self._stuck_s, self._end, server, outage)
        reached = True
        try:
            yield
        except Unavailable:
            reached = False
            raise
        finally:
            stuck.cancel()
            if reached:
                self._end(server, outage)

    def leave(self, own: object) -> None:
        """Whoever waits for this one is to knock instead."""
        for server, outage in list(self._known.items()):
            if outage.knocker is own:
                self._end(server, outage)

    def end_all(self) -> None:
        """Devices may belong to other servers now."""
        for server, outage in list(self._known.items()):
            self._end(server, outage)

    def _end(self, server: str, outage: _Outage) -> None:
        if self._known.get(server) is outage:
            del self._known[server]
        outage.over.set()
