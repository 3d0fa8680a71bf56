"""A device: a CF at one accumulatable member and at the sCA server, and the streams that bring commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from utuple.client.parts import Parts
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.receiving.link import Link
from utuple.client.sending.simple_commands import ScaCalls
from utuple.errors import NotRegistered, OutcomeUnknown, UTupleError
from utuple.model.columns import columns_of
from utuple.model.utuple import ID_BYTES, UTuple
from utuple.runtime.logs import Log
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire

_log = Log("utuple.client.receiving.device")


class Device(Deliveries):
    """Commands of a `serve`: each is confirmed to its sender as soon as it is in this program's hands.

    Use it as `async with space.serve(...) as commands: async for command in commands: ...`.
    """

    def __init__(self, parts: Parts, sca: ScaCalls, device: UTuple, *, named: bool) -> None:
        super().__init__(parts, device, named=named)
        self._sca = sca
        self._member = ""
        self._visited: set[str] = set()
        """Members that may have it registered."""
        self._visited_scas: set[str] = set()
        """sCA servers that may."""
        self._left_scas: set[str] = set()
        """Of those, where it is not attached and nobody says goodbye."""
        self._moving: asyncio.Task[None] | None = None
        self._at_sca = ""
        """The sCA server it is attached to, or is on its way to."""
        self._to_sca: asyncio.Task[None] | None = None
        self._unlisten: Callable[[], None] = _nothing
        self._unlisten_to_scas: Callable[[], None] = _nothing

    async def _begin(self, *, retry: bool) -> None:
        """Known to both, so that simple commands and all others find it."""
        tries = self._parts.tries(retry=retry)
        self._member = await self._parts.registrar.device(self._utuple, tries, self._visited)
        self._at_sca = await self._sca.register(self._utuple, tries, self._visited_scas)
        await self._ask_what_is_done()
        self._formal.attach(self._member)
        self._attach_to_sca()
        lines = self._parts.lines
        self._unlisten = lines.listen(self._key, self._changed)
        self._unlisten_to_scas = lines.listen_to_scas(self._shared_out)
        self._changed()
        self._shared_out()

    def _cease(self) -> set[str]:
        self._unlisten()
        self._unlisten_to_scas()
        self._left_scas = (self._left_scas | self._visited_scas) - self._formal.scas
        visited, self._visited, self._visited_scas = self._visited, set(), set()
        return visited

    async def _ask_what_is_done(self) -> None:
        """Load may have moved since it was here last: what it has acknowledged is known to the member it was attached to, and
        is asked of the others before this one gives it again. Who does not answer is not waited for."""
        line = self._parts.lines.known(self._key)
        if self._named and line is not None:
            others = [one.name for one in line.members if not one.suspended]
            others = [name for name in others if name != self._member]
            await asyncio.gather(*map(self._ask_what_is_done_at, others))

    async def _ask_what_is_done_at(self, member: str) -> None:
        parts, request = self._parts, pb.CommandedRequest(device=self._utuple.id)
        address = parts.lines.address_of(member)
        try:
            answer = await parts.transport.commanded(address, request, parts.config.detach_s)
        except UTupleError as error:
            _log.warning("not known what was acknowledged", server=member, reason=error)
            return
        done = answer.acknowledged
        self._formal.begin_without(
            [done[at : at + ID_BYTES] for at in range(0, len(done), ID_BYTES)]
        )

    async def _settled(self, limit_s: float) -> None:
        """Known to both, so forgotten by both. An sCA server that it is attached to hears the goodbye."""
        await super()._settled(limit_s)
        await self._sca.settled(self._utuple, limit_s)
        left, self._left_scas = self._left_scas, set()
        await self._sca.forget(self._utuple, sorted(left))

    # --- when something changes ----------------------------------------------------------------

    def _changed(self) -> None:
        if self._is_homeless and (self._moving is None or self._moving.done()):
            self._moving = self._start(self._move())

    @property
    def _is_homeless(self) -> bool:
        """A CF stays where it is while its member is in the line, on or off: commands go to all but those
        that are suspended."""
        line = self._parts.lines.known(self._key)
        member = line.member(self._member) if line is not None else None
        return line is not None and (member is None or member.suspended)

    async def _move(self) -> None:
        while self._is_homeless and not self._formal.is_over:
            await self._again(None)

    # --- when sCA servers come and go ------------------------------------------------------------

    def _shared_out(self) -> None:
        """Devices are shared out anew. It stays with its sCA server until the next one has it: that one is told to come by
        whoever is asked for it meanwhile, and what was sent by the old one is not lost."""
        owner = self._sca.owner(self._utuple)
        if owner is None or owner == self._at_sca or self._formal.is_over:
            return
        self._at_sca = owner
        if self._to_sca is not None:
            self._to_sca.cancel()
        self._to_sca = self._start(self._move_to_sca())

    async def _move_to_sca(self) -> None:
        server = self._at_sca
        await self._attach_to_sca().settled()
        if not self._formal.is_over:
            self._formal.keep_to_sca(server)

    def _attach_to_sca(self) -> Link:
        return self._formal.attach(self._at_sca, columns_to_wire(columns_of([self._utuple])))

    def _unknown_at(self, link: Link) -> None:
        self._start(self._again(link))

    async def _again(self, link: Link | None) -> None:
        """Registered once more: at a server that has forgotten it, or elsewhere if that one has gone."""
        while not self._formal.is_over:
            try:
                tries = self._parts.tries(retry=True)
                if link is not None and link.is_sca:
                    await self._sca.register(self._utuple, tries, self._visited_scas)
                    self._formal.attach_again(link)
                else:
                    registrar, visited = self._parts.registrar, self._visited
                    self._member = await registrar.device(self._utuple, tries, visited)
                    await self._ask_what_is_done()
                    self._settle(link)
                return
            except (NotRegistered, OutcomeUnknown) as error:
                _log.warning("could not register again yet", reason=error)
            except UTupleError as error:
                self._formal.fail(error)
                return
            await asyncio.sleep(self._parts.config.most_wait_s)

    def _settle(self, link: Link | None) -> None:
        self._formal.keep_to({self._member})
        if self._formal.attach(self._member) is link:
            self._formal.attach_again(link)


def _nothing() -> None:
    """Not listening yet."""
