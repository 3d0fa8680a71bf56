"""The guard of one program: whom it listens to. It holds the grants, and says no before a handler runs.

A guard decides by role and by whether credentials are void; what a call carries is judged by its handler, with the same grants
(`utuple.security.rights`). Grants come from wherever they come: their signature and their number decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
            if isinstance(error, InvalidInput | _NotKnown):
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
        if caller.until_us <= now_us():
            raise _NotKnown(
                f"the credentials of {caller.identity} ended {shown_time(caller.until_us)}; "
                "ask an operator for new ones (utuple grant)"
            )
        if self._authorities and caller.issuer not in self._authorities:
            raise _NotKnown(
                f"the credentials of {caller.identity} are of an authority that was replaced; "
                "ask an operator for new ones (utuple grant)"
            )

    def why_void(self, caller: Caller) -> str:
        """Why open calls of this caller end; empty if they go on."""
        try:
            self._check_certificate(caller)
        except _NotKnown as error:
            return str(error)
        return valid(self.grants, caller.identity).reason

    def end_void_calls(self, server: Server) -> int:
        """Of whoever may not be heard any longer."""
        ended = 0
        for reason, callers in self._void(server).items():
            error = NotAllowed(reason)
            status = Status(code_of(error), reason, ((TRAILER, described(error)),))
            ended += server.end_calls(lambda context: context.caller.identity in callers, status)  # noqa: B023
        return ended

    def _void(self, server: Server) -> dict[str, list[Caller]]:
        found: dict[str, list[Caller]] = {}
        for caller in {c.peer.identity for c in server.connections if c.peer.identity is not None}:
            if reason := self.why_void(caller):
                found.setdefault(reason, []).append(caller)
        return found


class _NotKnown(UTupleError):
    """It cannot be said who it is: any longer, or at all."""


def identity_of(context: Any) -> Identity | None:
    """Who makes this call; None where nothing is secured."""
    found = context.caller.identity
    return found.identity if found is not None else None


def _who(peer: Peer) -> str:
    return peer.identity.identity.uri if peer.identity is not None else _NO_IDENTITY
