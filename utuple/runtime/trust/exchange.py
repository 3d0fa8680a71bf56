"""How programs bring each other newer grants, beside what they say anyway: each says its number, and whoever has a higher one
sends the document along. Nobody is asked at the moment of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from utuple.errors import InvalidInput, UTupleError
from utuple.runtime.logs import Log
from utuple.runtime.trust.guard import Guard
from utuple.runtime.trust.refusal import cause_of
from utuple.security.credentials import replace_private
from utuple.security.signed import Signed
from utuple.wire import utuple_pb2 as pb

_log = Log("utuple.runtime.trust.exchange")

Keep = Callable[[Signed, int], Awaitable[None]]
"""Make these durable: from then on no older ones are judged by, whatever happens. They are newer, and checked."""


class GrantsExchange:
    def __init__(self, guard: Guard, keep: Keep) -> None:
        self._guard = guard
        self._keep = keep
        self._hearing = asyncio.Lock()

    @property
    def number(self) -> int:
        return self._guard.grants.number

    def offer(self, their_number: int) -> pb.SignedGrants | None:
        """For one that holds older ones."""
        signed = self._guard.signed
        if signed is None or their_number >= self.number:
            return None
        return pb.SignedGrants(content=signed.content, signature=signed.signature)

    async def hear(self, given: Signed) -> None:
        """In force when this returns, if they are newer. Raises InvalidInput if they are not what they say."""
        async with self._hearing:  # the same come by several ways at once
            grants = self._guard.newer(given)
            if grants is not None:
                await self._keep(given, grants.number)
                self._guard.enforce(grants, given)

    async def hear_if_any(self, message: pb.Announcement | pb.Heard | pb.Rumour) -> None:
        """What came along with something else: wrong ones are told of in the log, and change nothing. They come again, so
        that none are needed while others are being made durable."""
        if self._hearing.locked() or not message.HasField("grants"):
            return
        given = Signed(message.grants.content, message.grants.signature)
        try:
            await self.hear(given)
        except UTupleError as error:
            self._guard.audit.refused("", "Grants", cause_of(error))
            _log.warning("grants refused", reason=error)


class GrantsFile:
    """The grants of a program that has no store, in a file beside its credentials."""

    def __init__(self, guard: Guard) -> None:
        self._path = guard.own.path.with_suffix(".grants")
        self._restore(guard)

    def _restore(self, guard: Guard) -> None:
        try:
            guard.restore(self._path.read_bytes())
        except (OSError, InvalidInput) as error:
            if isinstance(error, InvalidInput):
                guard.audit.refused("", f"kept in {self._path.name}", cause_of(error))
            if not isinstance(error, FileNotFoundError):
                _log.warning("kept grants cannot be read", file=self._path.name, reason=error)

    async def keep(self, given: Signed, number: int) -> None:
        """Where the disk takes nothing they are in force all the same: a revocation does not wait for room, and who starts again hears
        of them from the managers."""
        try:
            replace_private(self._path, given.to_bytes().decode())
        except OSError as error:
            _log.error("grants cannot be kept", file=self._path.name, reason=error)
