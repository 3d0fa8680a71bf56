"""The grants as the managers have them, for who neither has a store nor announces itself: a door. It asks for their number now and
then, and for the document if there is a newer one. It judges nobody by them but whom it lets in at all; servers judge by their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc

from utuple.errors import InvalidInput, Unavailable
from utuple.runtime.channels import Channels
from utuple.runtime.clock import monotonic_s
from utuple.runtime.logs import Log
from utuple.runtime.trust.guard import Guard
from utuple.runtime.trust.tls import calling
from utuple.security.signed import Signed
from utuple.wire import utuple_pb2 as pb
from utuple.wire.utuple_pb2_grpc import TrustStub

_log = Log("utuple.runtime.trust.following")

EVERY_S = 1.0
"""Between two questions: a revocation ends what is open at a door within this and the time it takes to come to a manager."""
FIRST_S = 30.0
_CALL_LIMIT_S = 2.0


class GrantsFollower:
    def __init__(self, guard: Guard, managers: Sequence[str]) -> None:
        self._guard = guard
        self._managers = list(managers)
        self._channels = Channels(tls_for=lambda _: calling(guard.own))
        self.is_heard = False
        """Some manager answered the last time."""
        self._asked_s = 0.0
        self._turn = asyncio.Lock()
        self.reason = ""
        """Why the last one that did not, did not."""

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                self.is_heard = await self.ask()
                await asyncio.sleep(EVERY_S)
        finally:
            await self._channels.close()

    async def first(self, limit_s: float = FIRST_S) -> None:
        """The grants are here when this returns, this program's own among them. Raises Unavailable after a while, with why."""
        until_s = monotonic_s() + limit_s
        while True:
            self.is_heard = await self.ask()
            if self.is_heard and self._guard.grants.number:
                return
            if monotonic_s() >= until_s:
                raise Unavailable(f"no assignment manager gives the grants: {self.reason}")
            await asyncio.sleep(EVERY_S / 4)

    async def ask_soon(self) -> None:
        """Before somebody is refused who may have been granted something just now: whoever comes here is answered by a question that was
        asked after he came. They share it, since it is not asked more often than a few times a second."""
        came_s = monotonic_s()
        async with self._turn:
            if self._asked_s > came_s:
                return
            await asyncio.sleep(self._asked_s + EVERY_S / 4 - monotonic_s())
            self.is_heard = await self.ask()

    async def ask(self) -> bool:
        """The first manager that answers; the next time it is asked first."""
        self._asked_s = monotonic_s()
        for address in list(self._managers):
            try:
                await self._ask(address)
            except grpc.aio.AioRpcError as error:
                self.reason = f"{address}: {error.details()}"
                continue
            self._managers.remove(address)
            self._managers.insert(0, address)
            return True
        return False

    async def _ask(self, address: str) -> None:
        stub = TrustStub(self._channels.get(address))
        known = await stub.Whoami(pb.WhoamiRequest(), timeout=_CALL_LIMIT_S)
        if known.grants_number <= self._guard.grants.number:
            return
        answer = await stub.Grants(pb.GrantsRequest(), timeout=_CALL_LIMIT_S)
        given = Signed(answer.content, answer.signature)
        try:
            grants = self._guard.newer(given)
        except InvalidInput as error:
            _log.warning("grants refused", manager=address, reason=error)
            return
        if grants is not None:
            self._guard.enforce(grants, given)
