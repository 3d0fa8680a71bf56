"""One Deliver stream to one server, shared by every formal that is attached there.

It is always read, so that one stopped watch never stops another; it comes back by itself when it breaks,
and tells the server how far each formal had come, so that nothing is lost and little comes twice. It ends
with the last formal that was attached: nobody knocks for ever at a server that has left.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from utuple.client.config import Config
from utuple.client.receiving.delivery import chunks_of
from utuple.client.receiving.joined import acknowledgements, confirmations, together
from utuple.client.receiving.link import Link
from utuple.client.routing.lines import Lines
from utuple.client.routing.retry import backoff_s
from utuple.client.transport import Stream, Transport
from utuple.errors import NotAllowed, Refused, UTupleError
from utuple.model.key import key_of
from utuple.model.portions import portions
from utuple.model.utuple import UTuple
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.runtime.trouble import Trouble
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import MAX_SEVERAL

_log = Log("utuple.client.receiving.session")


class Session:
    def __init__(
        self,
        server: str,
        is_sca: bool,
        transport: Transport,
        lines: Lines,
        dice: random.Random,
        config: Config,
    ) -> None:
        self._server = server
        self._is_sca = is_sca
        self._transport = transport
        self._lines = lines
        self._dice = dice
        self._config = config
        self._links: dict[bytes, Link] = {}
        self._formals: dict[bytes, UTuple] = {}
        self._speaking: dict[bytes, Link] = {}
        self._confirms: list[tuple[bytes, bytes]] = []
        """Devices, each with the commands it has that the server is to be told of: 16 bytes each."""
        self._unheard: dict[bytes, bytes] = {}
        """The same, of devices that are not attached now: the server would not listen."""
        self._strays: list[pb.FromReader] = []
        """Farewells of links that left before the server had answered them, and words that it was heard what was dropped."""
        self._farewells: dict[bytes, deque[Link | None]] = {}
        """By formal, who has said goodbye on this stream and is not answered yet, in that order; None: a stray. A formal
        may leave a server and knock there again, to leave for good, before its first goodbye is answered: that answer
        must not be taken for the second one's, which would then never be said."""
        self._attaching: dict[bytes, Link] = {}
        """Whose Attach on this stream is not answered yet."""
        self._has_more = False
        """An sCA server was told that more devices are on their way."""
        self._trouble = Trouble(_log, "stream broke", "stream is back")
        self._silence = Trouble(_log, "detached without an answer", "detached with an answer again")
        self._stir = asyncio.Event()
        self._failed = 0
        self._hurry = asyncio.Event()
        self._stream: Stream | None = None
        self._life_us = 0
        """Since when the server lives that it is connected to, if that has said so."""
        self._tasks = Tasks()
        self._task: asyncio.Task[None] | None = None
        self._give_up: Callable[[Link], None] = self.drop
        self._handlers: dict[str | None, Callable[[pb.ToReader], None]] = {
            "attached": self._attached,
            "deliveries": self._delivered,
            "detached": self._detached,
            "replaced": self._replaced,
            "changed": self._changed,
            "dropped": self._dropped,
            "not_allowed": self._not_allowed,
        }

    def when_given_up(self, drop: Callable[[Link], None]) -> None:
        """What to do with a link that has no use any more."""
        self._give_up = drop

    # --- links ---------------------------------------------------------------------------------

    def attach(self, link: Link) -> None:
        self._links[link.id] = link
        self._formals[link.id] = link.receiver.utuple
        self.wake(link)
        if self._task is None:
            self._task = self._tasks.keep(self._run, f"stream of {self._server}")

    def begin_anew(self, since_us: int) -> None:
        """The server has begun another life. What is said to the one before, or an attempt to reach it, may take long to
        fail if its machine died with it: nobody should wait for that."""
        if since_us <= self._life_us:
            return
        self._failed = 0
        self._hurry.set()
        if self._stream is not None:
            self._stream.cancel()

    def wake(self, link: Link) -> None:
        if link.id in self._links:
            self._speaking[link.id] = link
            self._stir.set()

    async def say_goodbye(self, link: Link, *, cancel: bool, moves: bool = False) -> None:
        link.leave(cancel=cancel, moves=moves)
        self.wake(link)
        try:
            async with asyncio.timeout(self._config.detach_s):
                await link.gone.wait()
        except TimeoutError:
            self._silence.again(server=self._server)
        else:
            self._silence.over(server=self._server)

    def drop(self, link: Link) -> None:
        if self._links.get(link.id) is link:
            del self._links[link.id], self._formals[link.id]
            self._speaking.pop(link.id, None)
            self._unheard.pop(link.id, None)

    @property
    def is_idle(self) -> bool:
        return not self._links

    # --- the stream ----------------------------------------------------------------------------

    async def _run(self) -> None:
        while self._links:
            try:
                stream = await self._connected()
                if stream is not None:
                    await self._talk(stream)
            except Refused as error:
                self._fail(error)
            except UTupleError as error:
                if self._links:
                    self._trouble.again(server=self._server, reason=error)
            if self._links:
                for link in self._links.values():
                    link.lost()
                confirms, self._confirms = self._confirms, []
                for id_, commands in confirms:
                    self._unheard[id_] = self._unheard.get(id_, b"") + commands
                await self._pause()

    async def _connected(self) -> Stream | None:
        """None: the server has begun another life meanwhile."""
        self._hurry.clear()
        address = self._lines.address_of(self._server)
        opening = self._tasks.start(self._opened(address), f"connecting to {self._server}")
        hurry = self._tasks.start(self._hurry.wait(), f"{self._server} may have begun anew")
        try:
            await asyncio.wait((opening, hurry), return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                return None
            found = opening.result()
        finally:
            opening.cancel()
            hurry.cancel()
        if isinstance(found, UTupleError):
            raise found
        return found

    async def _opened(self, address: str) -> Stream | UTupleError:
        try:
            return await self._transport.deliver(address, sca=self._is_sca)
        except UTupleError as error:
            return error

    async def _pause(self) -> None:
        wait_s = backoff_s(self._failed, self._dice.random(), self._config.retry)
        self._failed += 1
        for link in self._links.values():  # any of them: the server may listen elsewhere now
            self._lines.refresh(key_of(*link.receiver.utuple.family))
            break
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._hurry.wait()

    async def _talk(self, stream: Stream) -> None:
        self._speaking, self._strays, self._farewells = dict(self._links), [], {}
        self._attaching = {}
        self._has_more = False
        self._stir.set()
        self._stream, self._life_us = stream, 0
        writer = self._tasks.start(self._write(stream), f"writer to {self._server}")
        try:
            await stream.receive_all(self._hear)
        finally:
            self._stream = None
            writer.cancel()
            stream.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _write(self, stream: Stream) -> None:
        try:
            while True:
                await self._stir.wait()
                self._stir.clear()
                speaking, self._speaking = self._speaking, {}
                confirms, self._confirms = self._confirms, []
                strays, self._strays = self._strays, []
                said = [
                    *strays,
                    *acknowledgements(speaking.values()),
                    *confirmations(confirms),
                ]
                for stray in strays:
                    self._await_answer(stray, None)
                for link in speaking.values():
                    for message in link.outgoing() if link.has_more_to_say else ():
                        self._await_answer(message, link)
                        said.append(message)
                    said += [pb.FromReader(settle=settle) for settle in link.settling()]
                await self._send(stream, said)
        except UTupleError:
            pass  # the reading side says why
        finally:
            stream.cancel()

    async def _send(self, stream: Stream, said: list[pb.FromReader]) -> None:
        sizes = (message.ByteSize() for message in said)
        cuts = list(portions(sizes, self._config.batch_bytes, MAX_SEVERAL - 1))
        for first, end in cuts or [(0, 0)]:
            message = self._with_more(said[first:end], is_last=end == len(said))
            if message:
                await stream.send(together(message))

    def _with_more(self, said: list[pb.FromReader], *, is_last: bool) -> list[pb.FromReader]:
        """A program with many devices is busy for a while when sCA servers change: a pause in which none of them comes must not be
        taken for the end."""
        more = not is_last or self._lines.is_telling
        begins = more and not self._has_more and any(one.HasField("attach") for one in said)
        if not self._is_sca or not (begins or (self._has_more and not more)):
            return said
        self._has_more = more
        word = pb.FromReader(bringing=pb.Bringing(more=more))
        return [word, *said] if more else [*said, word]

    def tell_all_came(self) -> None:
        """No more devices are on their way here but those that were attached."""
        if self._has_more:
            self._stir.set()

    def _hear(self, message: pb.ToReader) -> None:
        self._failed = 0
        if self._trouble.since_s is not None:  # asked here: every message passes
            self._trouble.over(server=self._server)
        handler = self._handlers.get(message.WhichOneof("message"))
        if handler is None:
            _log.warning("unknown message", server=self._server)
        else:
            handler(message)

    def _attached(self, message: pb.ToReader) -> None:
        link, attached = self._links.get(message.attached.id), message.attached
        asked = self._attaching.pop(attached.id, None)
        if link is None and not attached.unknown:  # it has left before it was answered
            detach = pb.Detach(
                id=attached.id,
                generation=attached.generation,
                cancel=asked is not None and asked.cancels,
            )
            self._strays.append(pb.FromReader(detach=detach))
            self._stir.set()
        if link is not None and link.generation == attached.generation:
            link.arrival_per_s = attached.arrival_per_s
            link.attached(unknown=attached.unknown)
            if link.up.is_set() and link.id in self._unheard:
                self._confirms.append((link.id, self._unheard.pop(link.id)))
            self.wake(link)

    def _delivered(self, message: pb.ToReader) -> None:
        found = chunks_of(self._server, message.deliveries, self._formals)
        for id_, chunk, places in found:
            link = self._links[id_]
            if not link.is_receiving:
                continue
            link.receiver.arrive(link, chunk, places)
            if link.is_device:  # repeats too: the first word may have been lost
                self._confirm(link, b"".join(chunk.ids[places.start : places.stop]))
        if self._confirms:
            self._stir.set()

    def _confirm(self, link: Link, commands: bytes) -> None:
        if link.may_confirm:
            self._confirms.append((link.id, commands))
        elif link.id in self._links:
            self._unheard[link.id] = self._unheard.get(link.id, b"") + commands

    def _await_answer(self, message: pb.FromReader, link: Link | None) -> None:
        if message.HasField("attach") and link is not None:
            self._attaching[link.id] = link
        if message.HasField("detach"):
            self._farewells.setdefault(message.detach.id, deque()).append(link)

    def _detached(self, message: pb.ToReader) -> None:
        id_, said = message.detached.id, message.detached.generation
        farewells = self._farewells.get(id_)
        if not farewells:
            return
        link = farewells.popleft()
        if not farewells:
            del self._farewells[id_]
        if link is not None and link.generation == said:
            link.flushed()

    def _replaced(self, message: pb.ToReader) -> None:
        """By one of a lower generation than ours: that was an attachment before this one, and no end of it."""
        link, generation = self._links.get(message.replaced.id), message.replaced.generation
        if link is None:
            return
        if not link.is_leaving:
            link.receiver.replaced(generation)
        elif generation > link.generation:
            link.gone.set()

    def _not_allowed(self, message: pb.ToReader) -> None:
        """This formal alone; the others on the stream go on."""
        link, refused = self._links.get(message.not_allowed.id), message.not_allowed
        if link is not None and link.generation == refused.generation:
            self._give_up(link)
            link.receiver.fail(NotAllowed(refused.reason))

    def _changed(self, message: pb.ToReader) -> None:
        for server in message.changed.servers:
            if server.name == self._server:
                self._life_us = server.since_us
        self._lines.hear(message.changed.lines, message.changed.servers)

    def _dropped(self, message: pb.ToReader) -> None:
        dropped = message.dropped
        link = self._links.get(dropped.id)
        if link is not None and link.is_receiving:
            try:
                link.receiver.dropped(dropped)
            except Exception as error:  # noqa: BLE001  the application's own: it is told, and deliveries go on
                failed = {"message": "on_dropped failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(failed)
            heard = pb.HeardDropped(id=dropped.id, origin=dropped.origin, after=dropped.after)
            self._strays.append(pb.FromReader(heard_dropped=heard))
            self._stir.set()

    def _fail(self, error: UTupleError) -> None:
        for link in list(self._links.values()):
            self._give_up(link)
            link.receiver.fail(error)

    async def close(self) -> None:
        self._links.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
