"""A session for each server that something is attached to, and what all of them share."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from typing import Protocol

from utuple.client.config import Config
from utuple.client.receiving.link import Link
from utuple.client.receiving.progress import Unflushed
from utuple.client.receiving.repeats import Seen
from utuple.client.receiving.session import Session
from utuple.client.routing.lines import Lines
from utuple.client.transport import OwnLoop, Transport
from utuple.runtime.tasks import Tasks

_DICE_BITS = 10

Settled = Callable[[], Awaitable[set[str]]]
"""Waits for registrations on their way. Gives the servers that may have the formal registered, attached there or not."""


class Replaceable(Protocol):
    """A formal of this space."""

    async def replace(self) -> None:
        """Another opening of the same reader takes its place: returns when all its servers know."""


class Sessions:
    """A session for each server that something is attached to."""

    def __init__(
        self,
        transport: Transport,
        lines: Lines,
        dice: random.Random,
        config: Config,
        now_us: Callable[[], int],
        own_loop: OwnLoop,
    ) -> None:
        self._transport = transport
        self._lines = lines
        self._dice = dice
        self._config = config
        self._now_us = now_us
        self._own_loop = own_loop
        self._generation = 0
        self._attempts = count(1)
        self.seen = Seen(config.seen_bytes)
        """What all formals that are attached by these were given."""
        self.unflushed = Unflushed(config.unflushed_readers)
        self._sessions: dict[tuple[str, bool], Session] = {}
        self._later: list[Callable[[], None]] = []
        self._ending = Tasks()
        self._is_closed = False
        self.open: dict[bytes, Replaceable] = {}
        """By id, whoever is open in this space or has not left all its servers yet."""
        lines.when_begun_anew(self._begin_anew)
        lines.when_all_told(self._all_told)

    def attach(self, link: Link) -> None:
        if self._is_closed:
            link.gone.set()
            return
        place = (link.server, link.is_sca)
        session = self._sessions.get(place)
        if session is None:
            session = self._sessions[place] = Session(
                link.server, link.is_sca, self._transport, self._lines, self._dice, self._config
            )
            session.when_given_up(self.drop)
        session.attach(link)

    def _begin_anew(self, server: str, since_us: int) -> None:
        session = self._sessions.get((server, True))
        if session is not None:
            session.begin_anew(since_us)

    def _all_told(self) -> None:
        for session in self._sessions.values():
            session.tell_all_came()

    def new_generation(self, heard: int = 0) -> int:
        """Higher than any before in this space, than the one that was heard of and, as far as clocks agree, than
        those of other programs. Some dice: two that open in one microsecond, or have heard the same, must differ."""
        least = max(self._now_us() << _DICE_BITS, self._generation + 1, heard + 1)
        self._generation = least + self._dice.getrandbits(_DICE_BITS)
        return self._generation

    def next_attempt(self) -> int:
        """Of an attachment: what was said on a stream that broke may reach its server after what is said on the next one."""
        return next(self._attempts)

    def soon(self, tell: Callable[[], None]) -> None:
        """Call this with others, when acknowledgements have been gathered for a while."""
        self._own_loop.check()
        self._later.append(tell)
        if len(self._later) == 1:
            loop = asyncio.get_running_loop()
            loop.call_later(self._config.acknowledge_every_s, self._tell_all)

    def _tell_all(self) -> None:
        later, self._later = self._later, []
        for tell in later:
            tell()

    def wake(self, link: Link) -> None:
        """The link has something to say."""
        session = self._session(link)
        if session is not None:
            session.wake(link)

    async def detach(self, link: Link, *, cancel: bool, moves: bool = False) -> None:
        """Say goodbye, and wait a little until the server has the last acknowledgements. `moves`: its device is attached to
        another sCA server by now."""
        session = self._session(link)
        if session is not None:
            await session.say_goodbye(link, cancel=cancel, moves=moves)
        self.drop(link)

    def move_away(self, link: Link) -> None:
        """Its device belongs to another sCA server, and is attached there by now."""
        leaving = self.detach(link, cancel=False, moves=True)
        self.finish(leaving, f"moving away from {link.server}")

    def drop(self, link: Link) -> None:
        """No goodbye: the server has left the line, or does not know the formal."""
        session = self._session(link)
        if session is not None:
            session.drop(link)
            if session.is_idle:
                del self._sessions[link.server, link.is_sca]
                self.finish(session.close(), "ending a session")
        link.gone.set()

    def finish(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """What ends something is done to its end, even if whoever asked for it is cancelled meanwhile."""
        return self._ending.start(work, name)

    def _session(self, link: Link) -> Session | None:
        return self._sessions.get((link.server, link.is_sca))

    async def close(self) -> None:
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)
        self._is_closed = True
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))
