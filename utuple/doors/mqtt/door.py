"""The door: who is connected, which sessions there are, and the space they share."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from uuid import uuid4
from weakref import WeakValueDictionary

import utuple
from utuple.doors.mqtt.client import Client
from utuple.doors.mqtt.codec.packets import Connect
from utuple.doors.mqtt.codec.reasons import ProtocolError, Reason
from utuple.doors.mqtt.config import Limits
from utuple.doors.mqtt.connection import Connection
from utuple.doors.mqtt.mapped.mapping import Mapping
from utuple.doors.mqtt.protocol.greeting import Terms, terms_of
from utuple.doors.mqtt.remembering import Memory, Remembered
from utuple.doors.mqtt.rooms import Room, Rooms
from utuple.doors.spaces import Spaces
from utuple.doors.visitors import Reception, Visitor
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks

_log = Log("utuple.doors.mqtt.door")
_TICK_S = 1.0


class Door:
    def __init__(
        self,
        own: utuple.Space,
        spaces: Spaces,
        reception: Reception | None,
        mapping: Mapping,
        limits: Limits,
    ) -> None:
        """`own` is the doors' space, `spaces` are those of who comes in; `reception` lets them in, where the cluster is secured."""
        self.own = own
        self.reception = reception
        self.mapping = mapping
        self.limits = limits
        self.rooms = Rooms(spaces, own, mapping, limits)
        self.memory = Memory(own, mapping)
        self.tasks = Tasks()
        self.is_stopping = False
        self._connections: set[Connection] = set()
        self._clients: OrderedDict[str, Client] = OrderedDict()
        """Sessions by client id, whether their client is connected or away."""
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # --- connections ----------------------------------------------------------------------------

    def admits(self, connection: Connection) -> bool:
        if self.is_stopping or len(self._connections) >= self.limits.connections:
            return False
        self._connections.add(connection)
        return True

    def left(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def greet(self, connection: Connection, connect: Connect) -> None:
        self.tasks.start(self._greet(connection, connect), "greeting")

    async def _greet(self, connection: Connection, connect: Connect) -> None:
        try:
            terms = terms_of(connect, self.limits, f"auto-{uuid4().hex}")
        except ProtocolError as error:
            connection.refuse(error.reason, str(error))
            return
        try:
            visitor = await self._visitor(connection, connect)
        except ProtocolError as error:
            connection.refuse(error.reason, str(error), is_told=True)
            return
        try:
            room = await self.rooms.enter(visitor)
            connection.when_lost(partial(self.rooms.leave, room))
            terms = replace(terms, client_id=room.owned(terms.client_id))
            async with self._locks.setdefault(terms.client_id, asyncio.Lock()):
                client, present = await self._client(terms, room)
                if connection.is_closed:  # it broke meanwhile
                    client.detach(with_will=False)
                    return
                client.welcome(connection, terms, present=present)
        except utuple.NotAllowed as error:
            connection.refuse(Reason.NOT_AUTHORIZED, str(error), is_told=True)
        except utuple.ReaderReplaced as error:
            connection.refuse(Reason.SERVER_UNAVAILABLE, str(error), is_told=True)
        except utuple.UTupleError as error:
            _log.warning("space does not answer", client=terms.client_id, reason=error)
            connection.refuse(Reason.SERVER_UNAVAILABLE, str(error))
        except Exception:
            connection.refuse(Reason.UNSPECIFIED_ERROR, "a fault of this door")
            raise

    async def _visitor(self, connection: Connection, connect: Connect) -> Visitor | None:
        """Who it is: by the token that is his password, or by his certificate. Raises `ProtocolError`."""
        if self.reception is None:
            return None
        token = (connect.password or b"").decode("latin-1").strip()
        try:
            visitor = await self.reception.admit(token, connection.certificate)
        except utuple.NotAllowed as error:
            reason = Reason.BAD_USER_NAME_OR_PASSWORD if token else Reason.NOT_AUTHORIZED
            raise ProtocolError(reason, str(error)) from None
        except utuple.NotRegistered as error:
            raise ProtocolError(Reason.SERVER_UNAVAILABLE, str(error)) from None
        if connect.user_name and connect.user_name != visitor.identity.name:
            said = f"the user name is {connect.user_name!r}, and the proof that of {visitor}"
            raise ProtocolError(Reason.BAD_USER_NAME_OR_PASSWORD, said)
        return visitor

    async def _client(self, terms: Terms, room: Room) -> tuple[Client, bool]:
        """The session for this connection, attached, and whether it was there before."""
        held = self._clients.get(terms.client_id)
        if held is not None:
            held.taken_over()
            held = self._clients.get(terms.client_id)  # gone, if it was for its connection only
        if (ending := self._ending.get(terms.client_id)) is not None:
            await asyncio.wait([ending])
        # Under its lock: a record that this door is just writing is not another door's.
        async with held.lock if held is not None else nullcontext():
            found = await self._found(terms.client_id)
        if held is not None and (
            found is None or found.stamp != held.stamp or held.quarters is not room
        ):
            # It has been at another door since, and that one's word counts; or he shows another proof of who he is, by which what is
            # open has to be opened again.
            held.replaced()
            held = None
        if terms.clean_start and held is not None:
            self.over(held)
            await held.discard()
        elif terms.clean_start and found is not None:
            await Client(self, terms, room).forget(found)
        if terms.clean_start:
            held = found = None
        client = held or Client(self, terms, room)
        async with client.lock:
            try:
                await client.attach(terms, found if held is None else None)
            except BaseException:
                if held is None:
                    await client.abandon()
                else:
                    client.detach(with_will=True)  # as it was before
                raise
        self._clients[terms.client_id] = client
        self._clients.move_to_end(terms.client_id)
        return client, held is not None or found is not None

    async def _found(self, client_id: str) -> Remembered | None:
        """The session that some door has kept."""
        found = await self.memory.find(client_id)
        return None if found is None or found.expires_s < now_us() / 1e6 else found

    def end(self, client: Client) -> None:
        """Its session is over. Who comes again under its name waits until nobody remembers it."""
        self.over(client)
        ending = self.tasks.start(client.end(), "a session ends")
        self._ending[client.id] = ending
        ending.add_done_callback(lambda _: self._ended(client.id, ending))

    def _ended(self, client_id: str, ending: asyncio.Task[None]) -> None:
        if self._ending.get(client_id) is ending:
            del self._ending[client_id]

    def over(self, client: Client) -> None:
        if self._clients.get(client.id) is client:
            del self._clients[client.id]

    # --- time -----------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            for client in list(self._clients.values()):
                if client.connection is not None:
                    client.tick()
                    self._end_if_void(client)
            self._forget_some()

    def _end_if_void(self, client: Client) -> None:
        """Who was revoked meanwhile, or whose token has ended, is told so."""
        visitor = client.quarters.visitor
        if visitor is None or self.reception is None:
            return
        error = self.reception.why_void(visitor)
        if error is not None:
            _log.info("connection ended", client=client.id, reason=error)
            client.broken(Reason.NOT_AUTHORIZED)

    def _forget_some(self) -> None:
        """Sessions that have been away longest are found again in the space when their client comes back."""
        away = [c for c in self._clients.values() if c.connection is None]
        for client in away[: max(0, len(away) - self.limits.sessions_away)]:
            self.over(client)
            self.tasks.start(client.subscribing.leave(), "forgetting a session")

    async def stop(self) -> None:
        """Clients are told, and what they had published is registered."""
        self.is_stopping = True
        try:
            async with asyncio.timeout(self.limits.stop_s):
                for client in list(self._clients.values()):
                    client.broken(Reason.SERVER_SHUTTING_DOWN)
                for connection in list(self._connections):
                    connection.close(Reason.SERVER_SHUTTING_DOWN)
                await self.rooms.drained()
                while self.tasks:
                    await asyncio.wait(list(self.tasks))
        except TimeoutError:
            _log.warning("stopped before everything was said", tasks=len(self.tasks))
        await self.tasks.close()
        await self.rooms.close()
