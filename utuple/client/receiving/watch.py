"""A watch: an EF at every member of one epoch, and the streams that bring its matches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from utuple.client.parts import Parts
from utuple.client.reading.read import OpenRead, open_read
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.receiving.drops import Drop, Drops, OnDropped
from utuple.client.receiving.link import Link
from utuple.client.routing.every_member import FanOut
from utuple.client.routing.outcome import Behind, raise_refusals
from utuple.client.routing.retry import Tries
from utuple.client.routing.route import Target, targets
from utuple.client.sending.batcher import Submission
from utuple.cluster.line import Line
from utuple.errors import NotRegistered, OutcomeUnknown, UTupleError
from utuple.model.packed import packed
from utuple.model.utuple import UTuple
from utuple.runtime.logs import Log
from utuple.wire import utuple_pb2 as pb

_log = Log("utuple.client.receiving.watch")


class Watch(Deliveries):
    """Deliveries of a `watch`: stored matches first, then live ones, without a gap.

    Use it as `async with space.watch(...) as events: async for event in events: ...`. Without `async with`
    it opens at the first delivery and closes with the space.
    """

    def __init__(
        self, parts: Parts, wanted: UTuple, *, named: bool, on_dropped: OnDropped | None = None
    ) -> None:
        self._drops = Drops(wanted, on_dropped)
        super().__init__(parts, wanted, named=named)
        self._line: Line | None = None
        self._accepted: dict[Target, int] = {}
        """Where it is kept, or was read, and the last epoch for which that is sure."""
        self._off: set[str] = set()
        """Members that are off and were only read, or may know this reader from before."""
        self._visited: set[str] = set()
        """Members that may have it registered."""
        self._following: asyncio.Task[None] | None = None
        self._unlisten: Callable[[], None] = _nothing

    @property
    def dropped(self) -> tuple[Drop, ...]:
        """What was dropped while this reader was away, as far as this watch was told: the last thousand of it."""
        return tuple(self._drops.last)

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._formal.drops = self._drops

    async def _begin(self, *, retry: bool) -> None:
        await self._spread(self._parts.tries(retry=retry))
        self._unlisten = self._parts.lines.listen(self._key, self._changed)
        self._changed()

    def _cease(self) -> set[str]:
        self._unlisten()
        self._line, visited = None, self._visited
        self._accepted, self._off, self._visited = {}, set(), set()
        return visited

    # --- at every member -----------------------------------------------------------------------

    async def _spread(self, tries: Tries) -> None:
        """R2: accepted by all serving members of one epoch; then streams, or for members that are off
        their stored matches."""
        fan_out: FanOut[OpenRead | None] = self._parts.fan_out(self._utuple)
        line, accepted = await fan_out.run(
            self._key, self._bring_to, tries, self._discard, self._has_accepted
        )
        self._line = line
        places = targets(line, self._utuple)
        self._accepted = dict.fromkeys(places, line.epoch)
        for target in places:
            opened = accepted.get(target.member)
            if opened is not None:
                self._off.add(target.member)
                self._start(self._read_off(opened))
            elif target.keeps:
                self._attach(target.member)
        self._formal.keep_to({member.name for member in line.members})

    def _has_accepted(self, target: Target, line: Line) -> bool:
        """From one epoch to the next, who stays on keeps it and who stays off gets nothing new."""
        epoch = self._accepted.get(target)
        return epoch is not None and 0 <= line.epoch - epoch <= 1

    async def _bring_to(self, target: Target, line: Line, retry: bool) -> OpenRead | None:
        if target.keeps:
            self._visited.add(target.member)
            await self._register(target.member, line, retry=retry)
            if self._line is not None:  # following: nothing more to wait for
                self._accepted[target] = line.epoch
                self._attach(target.member)
        elif target.member not in self._formal.servers:
            return await open_read(self._parts, self._utuple, line, target.member)
        return None

    def _attach(self, member: str) -> None:
        self._off.discard(member)
        self._formal.attach(member)

    async def _register(self, member: str, line: Line, *, retry: bool) -> None:
        epochs = {self._utuple.family: line.epoch}
        submission = Submission(pb.TEMPLATES, epochs, retry, template=packed(self._utuple))
        deadline_s = self._parts.tries().deadline_s
        refusals = await self._parts.batcher.send(member, submission, deadline_s)
        raise_refusals([found.refusal for found in refusals])

    def _discard(self, opened: OpenRead | None) -> None:
        if opened is not None:
            self._parts.sessions.finish(opened.close(), "ending a read")

    # --- members that are off ------------------------------------------------------------------

    async def _read_off(self, opened: OpenRead) -> None:
        """A member that takes nothing more: its stored matches, once. A reader with a name may have a
        position there; then its stream brings what is left."""
        try:
            if self._named and await self._is_known_at(opened.member):
                return
            async for chunk in opened.chunks():
                await self._formal.has_room()
                self._formal.arrive(None, chunk, range(len(chunk.columns)))
        except (NotRegistered, OutcomeUnknown) as error:
            _log.warning("reading broke", server=opened.member, reason=error)
            self._start(self._read_off_again(opened.member))
        except UTupleError as error:
            self._formal.fail(error)
        finally:
            await opened.close()

    async def _read_off_again(self, member: str) -> None:
        self._off.add(member)
        while member in self._off:
            await asyncio.sleep(self._parts.config.most_wait_s)
            place = self._line.member(member) if self._line is not None else None
            if self._line is None or place is None or place.suspended:
                return  # others have its rows, or it is attached when it returns
            try:
                opened = await open_read(self._parts, self._utuple, self._line, member)
            except (NotRegistered, Behind) as error:
                _log.warning("reading is not possible yet", server=member, reason=error)
            except UTupleError as error:
                return self._formal.fail(error)
            else:
                await self._read_off(opened)
                return

    async def _is_known_at(self, member: str) -> bool:
        link = self._formal.attach(member)
        try:
            async with asyncio.timeout(self._parts.config.attach_s):
                await link.settled()
        except TimeoutError:
            return False
        return not link.gone.is_set()

    # --- when something changes ----------------------------------------------------------------

    def _changed(self) -> None:
        if self._is_behind and (self._following is None or self._following.done()):
            self._following = self._start(self._follow())

    @property
    def _is_behind(self) -> bool:
        return self._line is not None and self._parts.lines.has_newer(self._key, self._line)

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
            if line is None or line.member(link.server) is None:
                return  # the link ends when the line is followed
            places = targets(line, self._utuple)
            target = next((place for place in places if place.member == link.server), None)
            if target is None or not target.keeps:
                self._formal.drop(link)
                if target is not None:  # else nothing that it could match is left there
                    self._start(self._read_off_again(link.server))
                return
            try:
                await self._register(link.server, line, retry=True)
                self._formal.attach_again(link)
                return
            except (Behind, NotRegistered, OutcomeUnknown) as error:
                _log.warning("could not register again yet", server=link.server, reason=error)
            except UTupleError as error:
                self._formal.fail(error)
                return
            self._parts.lines.refresh(self._key)
            await self._parts.lines.pause(self._parts.config.most_wait_s, {self._key: line})


def _nothing() -> None:
    """Not listening yet."""
