"""A watch: an EF at every member of one epoch, and the streams that bring its matches."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Self

from utuple.client.attempt import Behind, raise_refusals
from utuple.client.batcher import Parcel
from utuple.client.delivery import Delivery
from utuple.client.everywhere import Tour
from utuple.client.formal import Formal
from utuple.client.link import Link
from utuple.client.parts import Parts
from utuple.client.reading import Opened, open_read
from utuple.client.retry import Tries
from utuple.client.route import Stop, stops
from utuple.cluster.line import Line
from utuple.errors import Closed, NotRegistered, OutcomeUnknown, UTupleError
from utuple.model.key import key_of
from utuple.model.utuple import UTuple
from utuple.runtime.logs import Log
from utuple.wire import utuple_pb2 as pb

_log = Log("utuple.client.watching")


class Watch:
    """Deliveries of a `watch`: stored matches first, then live ones, without a gap.

    Use it as `async with space.watch(...) as events: async for event in events: ...`. Without `async with`
    it opens at the first delivery and closes with the space.
    """

    def __init__(self, parts: Parts, wanted: UTuple, *, named: bool) -> None:
        self._parts = parts
        self._wanted = wanted
        self._named = named
        self._key = key_of(*wanted.family)
        self._formal = Formal(
            wanted,
            named=named,
            sessions=parts.sessions,
            config=parts.config,
            unknown_at=self._unknown_at,
        )
        self._line: Line | None = None
        self._off: set[str] = set()
        self._following: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._unlisten = lambda: None
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._line else "not open yet"
        reader = f" as {self._wanted.reader!r}" if self._named else ""
        return f"<watch of {'/'.join(self._wanted.family)}{reader}, {state}>"

    # --- the application's side ----------------------------------------------------------------

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        if self._line is None:
            await self.open()
        chunk, row = await self._formal.next()
        return Delivery(chunk, row, self._formal.acknowledge)

    async def take(self, most: int) -> list[Delivery]:
        """The next delivery and what else is there already, at most so many."""
        found = [await anext(self)]
        while len(found) < most and not self._formal.is_empty:
            chunk, row = self._formal.take()
            found.append(Delivery(chunk, row, self._formal.acknowledge))
        return found

    async def open(self, *, retry: bool = False) -> Self:
        """Registered at every member, and streams to them open."""
        if self._closed:
            raise Closed("this watch is closed")
        if self._line is None:
            try:
                await self._spread(self._parts.tries(retry=retry))
            except OutcomeUnknown as error:
                error.pending = self
                raise
            self._unlisten = self._parts.lines.listen(self._changed)
            self._changed()
            await self._formal.attached()
        return self

    async def close(self) -> None:
        """Acknowledgements are flushed. A reader with a name may come back and go on after them."""
        await self._end(cancel=not self._named)

    async def cancel(self) -> None:
        """Close for good: the reader's name and its positions are forgotten by the servers."""
        await self._end(cancel=True)

    async def _end(self, *, cancel: bool) -> None:
        if not self._closed:
            self._closed = True
            self._unlisten()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._formal.leave(cancel=cancel)

    # --- at every member -----------------------------------------------------------------------

    async def _spread(self, tries: Tries) -> None:
        """R2: accepted by all serving members of one epoch; then streams, or for members that are off
        their stored matches."""
        tour: Tour[Opened | None] = Tour(self._parts.lines, self._parts.dice, self._parts.config)
        line, accepted = await tour.run(self._key, self._visit, tries, self._abandon)
        self._line = line
        for stop in stops(line):
            opened = accepted[stop.member]
            if opened is not None:
                self._off.add(stop.member)
                self._start(self._read_off(opened))
            else:
                self._off.discard(stop.member)
                self._formal.attach(stop.member)
        for server in self._formal.servers - {member.name for member in line.members}:
            self._formal.depart(server)

    async def _visit(self, stop: Stop, line: Line, retry: bool) -> Opened | None:
        if stop.keeps:
            await self._register(stop.member, line, retry=retry)
        elif stop.member not in self._formal.servers:
            return await open_read(self._parts, self._wanted, line, stop.member)
        return None

    async def _register(self, member: str, line: Line, *, retry: bool) -> None:
        epochs = {self._wanted.family: line.epoch}
        parcel = Parcel(pb.TEMPLATES, epochs, retry, template=self._wanted)
        deadline_s = self._parts.tries().deadline_s
        refusals = await self._parts.batcher.send(member, parcel, deadline_s)
        raise_refusals([found.refusal for found in refusals])

    def _abandon(self, opened: Opened | None) -> None:
        async def close(opened: Opened) -> None:
            await opened.rest.aclose()

        if opened is not None:
            self._start(close(opened))

    async def _read_off(self, opened: Opened) -> None:
        """A member that takes nothing more: its stored matches, once. A reader with a name may have a
        position there; then its stream brings what is left."""
        try:
            if self._named and await self._is_known_at(opened.member):
                return
            async for chunk in opened.chunks():
                await self._formal.has_room()
                self._formal.arrive(None, chunk)
        except (NotRegistered, OutcomeUnknown) as error:
            _log.warning("reading broke", server=opened.member, reason=error)
            self._start(self._read_off_again(opened.member))
        finally:
            await opened.rest.aclose()

    async def _read_off_again(self, member: str) -> None:
        while True:
            await asyncio.sleep(self._parts.config.most_wait_s)
            line = self._line
            if line is None or line.member(member) is None or member not in self._off:
                return
            try:
                opened = await open_read(self._parts, self._wanted, line, member)
            except (NotRegistered, Behind):
                continue
            await self._read_off(opened)
            return

    async def _is_known_at(self, member: str) -> bool:
        link = self._formal.attach(member)
        waits = [asyncio.create_task(event.wait()) for event in (link.up, link.gone)]
        try:
            timeout = self._parts.config.attach_s
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return link.up.is_set() and not link.gone.is_set()

    # --- when something changes ----------------------------------------------------------------

    def _changed(self) -> None:
        if self._is_behind and (self._following is None or self._following.done()):
            self._following = self._start(self._follow())

    @property
    def _is_behind(self) -> bool:
        known = self._parts.lines.known(self._key)
        return self._line is not None and known is not None and known.epoch > self._line.epoch

    async def _follow(self) -> None:
        """The line has changed: registered under the new epoch, streams to new members."""
        while self._is_behind and not self._formal.is_over:
            try:
                await self._spread(self._parts.tries(retry=True))
            except (NotRegistered, OutcomeUnknown) as error:
                _log.warning("could not follow the line yet", reason=error)
                await asyncio.sleep(self._parts.config.most_wait_s)
            except UTupleError as error:
                self._formal.fail(error)

    def _unknown_at(self, link: Link) -> None:
        if link.server in self._off:
            self._formal.drop(link)
        else:
            self._start(self._register_again(link))

    async def _register_again(self, link: Link) -> None:
        """A server has forgotten this EF: it expired while the stream was broken."""
        while link.server in self._formal.servers:
            line = self._parts.lines.known(self._key) or self._line
            assert line is not None
            try:
                await self._register(link.server, line, retry=True)
                self._formal.attach_again(link)
                return
            except (Behind, NotRegistered, OutcomeUnknown) as error:
                _log.warning("could not register again yet", server=link.server, reason=error)
            except UTupleError as error:
                self._formal.fail(error)
                return
            await self._parts.lines.refresh(self._key)
            await asyncio.sleep(self._parts.config.most_wait_s)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
