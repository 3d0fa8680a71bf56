"""The guard of one program: whom it listens to. It holds the grants, and says no before a handler runs.

A guard decides by role and by whether credentials are void; what a call carries is judged by its handler, with the same grants
(`utuple.security.rights`). Grants come from wherever they come: their signature and their number decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from utuple.errors import InvalidInput, NotAllowed, Unavailable, UTupleError
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.runtime.trust.auditing import Auditor
from utuple.security.authority import common_name
from utuple.security.calls import allow_call
from utuple.security.credentials import issuer_of, peer_identity, until_us_of
from utuple.security.grants import Grants
from utuple.security.identity import Identity, Role
from utuple.security.own import OwnCredentials, shown_time
from utuple.security.rights import valid
from utuple.security.signed import Signed, signed_from, verified
from utuple.transport.context import Aborted, Context
from utuple.transport.peer import Peer
from utuple.transport.server import Server
from utuple.transport.status import Status
from utuple.wire.status import TRAILER, code_of, described

_log = Log("utuple.runtime.trust.guard")
_NO_IDENTITY = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """What a connection has proved, read once."""

    identity: Identity
    until_us: int
    issuer: str


class Guard:
    def __init__(self, own: OwnCredentials, auditor: Auditor) -> None:
        self.own = own
        self.audit = auditor
        self.grants = Grants(own.identity.cluster)
        self.signed: Signed | None = None
        self.when_changed: list[Callable[[], None]] = []
        """Called when other grants are in force."""
        self._authorities: frozenset[str] = frozenset()
        """Names of those that hold; none: those the credentials came with."""

    # --- grants ----------------------------------------------------------------------------------

    def newer(self, given: Signed) -> Grants | None:
        """These, if they are newer than those in force. Raises InvalidInput if they are not what they say."""
        grants = verified(given, self.own.identity.cluster, self.own.authorities_pem)
        return grants if grants.number > self.grants.number else None

    def restore(self, kept: bytes) -> None:
        """Those that were in force before, as they were kept."""
        given = signed_from(kept)
        grants = self.newer(given)
        if grants is not None:
            self.enforce(grants, given)

    def enforce(self, grants: Grants, given: Signed) -> None:
        """From now on. Open calls of those that are void by them end."""
        if grants.number <= self.grants.number:
            return
        self.grants, self.signed = grants, given
        self.own.trust(grants.authorities)
        self._authorities = frozenset(map(common_name, grants.authorities))
        _log.info("grants in force", number=grants.number)
        for tell in self.when_changed:
            tell()

    # --- calls -----------------------------------------------------------------------------------

    def authorise(self, method: str, context: Context) -> None:
        """The one place that every call passes. Raises the refusal."""
        try:
            caller = self.caller(context.caller)
            self._check(caller, method)
        except UTupleError as error:
            who = _who(context.caller)
            self.audit.refused(who, method.rpartition("/")[2], type(error).__name__)
            code = code_of(error)
            if isinstance(error, InvalidInput):
                code, error = grpc.StatusCode.UNAUTHENTICATED, NotAllowed(str(error))
            raise Aborted(Status(code, str(error), ((TRAILER, described(error)),))) from None

    def caller(self, peer: Peer) -> Caller:
        if peer.identity is None:
            certificate = peer.certificate
            identity = peer_identity(certificate)
            assert certificate is not None
            peer.identity = Caller(identity, until_us_of(certificate), issuer_of(certificate))
        caller: Caller = peer.identity
        return caller

    def _check(self, caller: Caller, method: str) -> None:
        self._check_certificate(caller)
        identity = caller.identity
        is_own = identity.role in (Role.PROGRAM, Role.OPERATOR)
        if not self.grants.number and not is_own:
            raise Unavailable("this program has not heard of any grants yet; try again")
        verdict = allow_call(self.grants, identity, method)
        if not verdict.is_allowed:
            raise NotAllowed(verdict.reason)

    def _check_certificate(self, caller: Caller) -> None:
        if reason := self._outdated(caller):
            raise Unavailable(reason)

    def _outdated(self, caller: Caller) -> str:
        """Why what was shown in the handshake does not hold any longer. Whoever has renewed it need only connect again, so
        that this is not the last word; who has not is told by the next handshake."""
        whose = f"the credentials of {caller.identity}"
        if caller.until_us <= now_us():
            return f"{whose} ended {shown_time(caller.until_us)}: connect again with newer ones"
        if self._authorities and caller.issuer not in self._authorities:
            return f"{whose} are of an authority that was replaced: connect again with newer ones"
        return ""

    def why_void(self, caller: Caller) -> UTupleError | None:
        """What open calls of this caller end with; None if they go on."""
        if reason := self._outdated(caller):
            return Unavailable(reason)
        reason = valid(self.grants, caller.identity).reason
        return NotAllowed(reason) if reason else None

    def end_void_calls(self, server: Server) -> None:
        """Of whoever may not be heard any longer. His connection takes no more calls: he shows who he is anew."""
        for connection in list(server.connections):
            caller = connection.peer.identity
            error = None if caller is None else self.why_void(caller)
            if error is None or connection.is_leaving:
                continue
            status = Status(code_of(error), str(error), ((TRAILER, described(error)),))
            server.end_calls(partial(_is_of, connection.peer), status)
            connection.leave()


def _is_of(peer: Peer, context: Context) -> bool:
    return context.caller is peer


def identity_of(context: Any) -> Identity | None:
    """Who makes this call; None where nothing is secured."""
    found = context.caller.identity
    return found.identity if found is not None else None


def _who(peer: Peer) -> str:
    return peer.identity.identity.uri if peer.identity is not None else _NO_IDENTITY
