"""Who comes in by a door of a secured cluster: he shows a token, or his certificate in the handshake.

It is checked here, so that whoever may not come in is told at once, and again by every program that the door calls for him. What he has
open here ends when it is void: the door follows the grants as the managers have them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from utuple.errors import NotAllowed, UTupleError
from utuple.runtime.trust.auditing import Auditor
from utuple.runtime.trust.following import GrantsFollower
from utuple.runtime.trust.guard import Caller, Guard
from utuple.security.identity import Identity
from utuple.security.own import OwnCredentials
from utuple.security.proofs import CERTIFICATE, TOKEN

_COMES_IN = "/utuple.v1.Trust/Whoami"
"""What everybody may ask who may be heard at all."""


@dataclass(frozen=True, slots=True)
class Visitor:
    caller: Caller
    shown: tuple[tuple[str, str], ...]
    """To every program, with each call."""

    @property
    def identity(self) -> Identity:
        return self.caller.identity

    def __str__(self) -> str:
        return str(self.identity)


class Reception:
    def __init__(self, own: OwnCredentials, managers: Sequence[str]) -> None:
        self.own = own
        self._guard = Guard(own, Auditor(None))
        self.follower = GrantsFollower(self._guard, managers)
        self.when_changed = self._guard.when_changed

    @property
    def cluster(self) -> str:
        return self.own.identity.cluster

    async def admit(self, token: str = "", certificate_der: bytes | None = None) -> Visitor:
        """Raises NotAllowed; of those who show both, the token counts. Who is not known yet may have been granted something just
        now, so that the managers are asked before he is refused."""
        visitor = self._proved(token, certificate_der)
        try:
            self._guard.check(visitor.caller, _COMES_IN)
        except NotAllowed:
            await self.follower.ask_soon()
            self._guard.check(visitor.caller, _COMES_IN)
        return visitor

    def _proved(self, token: str, certificate_der: bytes | None) -> Visitor:
        if not token and certificate_der is None:
            raise NotAllowed(
                "nobody is known here without a token (utuple token) or a certificate of the cluster (utuple grant)"
            )
        shown = (
            "" if token or certificate_der is None else base64.b64encode(certificate_der).decode()
        )
        door = Caller(self.own.identity, self.own.held.until_us, "")
        caller = self._guard.spoken_for(door, token, shown)
        return Visitor(caller, ((TOKEN, token),) if token else ((CERTIFICATE, shown),))

    def why_void(self, visitor: Visitor) -> UTupleError | None:
        """Why what he has open ends; None if it goes on."""
        return self._guard.why_void(visitor.caller)
