"""The guard of one program: whom it listens to. It holds the grants, and says no before a handler runs.

A guard decides by role and by whether credentials are void; what a call carries is judged by its handler, with the same grants
(`utuple.security.rights`). Grants come from wherever they come: their signature and their number decide.

A call that a door makes for somebody is his: he is the caller, as far as what the door shows proves it (`speaking`).
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
from utuple.runtime.trust.refusal import cause_of
from utuple.runtime.trust.speaking import Proofs
from utuple.security.authority import common_name, holding
from utuple.security.calls import Through, allow_call
from utuple.security.credentials import issuer_of, peer_identity, until_us_of
from utuple.security.grants import Grants
from utuple.security.identity import Identity, Role
from utuple.security.own import OwnCredentials, shown_time
from utuple.security.proofs import CERTIFICATE, TOKEN, ended
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
    """What a connection has proved, read once; or whom a door speaks for on it."""

    identity: Identity
    until_us: int
    issuer: str
    through: Through | None = None


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
        self._proofs = Proofs()

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
        self.own.trust(partial(holding, named_pem=grants.authorities))
        self._authorities = frozenset(map(common_name, grants.authorities))
        _log.info("grants in force", number=grants.number)
        for tell in self.when_changed:
            tell()

    # --- calls -----------------------------------------------------------------------------------

    def authorise(self, method: str, context: Context) -> None:
        """The one place that every call passes. Raises the refusal."""
        try:
            caller = context.identity = self.caller(context.caller)
            shown = (context.header(TOKEN), context.header(CERTIFICATE))
            if any(shown):
                self._check_certificate(caller)
                caller = context.identity = self.spoken_for(caller, *shown)
            self.check(caller, method)
        except UTupleError as error:
            known = identity_of(context)
            who = known.uri if known is not None else _NO_IDENTITY
            self.audit.refused(who, method.rpartition("/")[2], cause_of(error))
            code = code_of(error)
            if isinstance(error, InvalidInput):
                code, error = grpc.StatusCode.UNAUTHENTICATED, NotAllowed(str(error))
            raise Aborted(Status(code, str(error), ((TRAILER, described(error)),))) from None

    def refused(self, host: str, why: str) -> None:
        """Whoever does not get through the handshake is nobody; he is counted by where he came from, and why."""
        self.audit.refused(_NO_IDENTITY, f"handshake from {host}", why)

    def caller(self, peer: Peer) -> Caller:
        if peer.identity is None:
            certificate = peer.certificate
            identity = peer_identity(certificate)
            assert certificate is not None
            peer.identity = Caller(identity, until_us_of(certificate), issuer_of(certificate))
        caller: Caller = peer.identity
        return caller

    def spoken_for(self, door: Caller, token: str, certificate: str = "") -> Caller:
        """Whom this caller speaks for, by what it shows. That it may is judged with the call."""
        own = (self.own.identity.cluster, self.own.authorities_pem)
        proved = self._proofs.proved(token, certificate, *own)
        through = Through(door.identity, proved.by_token)
        return Caller(proved.identity, proved.until_us, proved.issuer, through)

    def check(self, caller: Caller, method: str) -> None:
        """Raises the refusal."""
        self._check_certificate(caller)
        identity = caller.identity
        is_own = identity.role in (Role.PROGRAM, Role.OPERATOR)
        if not self.grants.number and not is_own:
            raise Unavailable("this program has not heard of any grants yet; try again")
        verdict = allow_call(self.grants, identity, method, caller.through)
        if not verdict.is_allowed:
            raise NotAllowed(verdict.reason)

    def _check_certificate(self, caller: Caller) -> None:
        if error := self._outdated(caller):
            raise error

    def _outdated(self, caller: Caller) -> UTupleError | None:
        """Why what was shown in the handshake does not hold any longer. Whoever has renewed it need only connect again, so
        that this is not the last word; who has not is told by the next handshake. What was shown at a door has ended for good."""
        whose, is_spoken_for = f"the credentials of {caller.identity}", caller.through is not None
        if caller.until_us <= now_us() and is_spoken_for:
            return NotAllowed(ended(caller.identity, caller.until_us))
        if caller.until_us <= now_us():
            until = shown_time(caller.until_us)
            return Unavailable(f"{whose} ended {until}: connect again with newer ones")
        if not self._authorities or caller.issuer in self._authorities:
            return None
        reason = f"{whose} are of an authority that was replaced"
        if is_spoken_for:
            return NotAllowed(f"{reason}: newer ones are needed")
        return Unavailable(f"{reason}: connect again with newer ones")

    def why_void(self, caller: Caller) -> UTupleError | None:
        """What open calls of this caller end with; None if they go on."""
        if error := self._outdated(caller):
            return error
        reason = valid(self.grants, caller.identity).reason
        return NotAllowed(reason) if reason else None

    def end_void_calls(self, server: Server) -> None:
        """Of whoever may not be heard any longer. His connection takes no more calls: he shows who he is anew. Of those whom a
        door speaks for only the calls end: others come by the same connection."""
        for connection in list(server.connections):
            caller = connection.peer.identity
            error = None if caller is None else self.why_void(caller)
            if error is None or connection.is_leaving:
                continue
            server.end_calls(partial(_is_of, connection.peer), _status(error))
            connection.leave()
        for spoken_for in {call.identity for call in server.open_calls if _is_through(call)}:
            if error := self.why_void(spoken_for):
                server.end_calls(partial(_is_for, spoken_for), _status(error))


def _status(error: UTupleError) -> Status:
    return Status(code_of(error), str(error), ((TRAILER, described(error)),))


def _is_of(peer: Peer, context: Context) -> bool:
    return context.caller is peer


def _is_for(caller: Caller, context: Context) -> bool:
    return bool(context.identity == caller)


def _is_through(context: Context) -> bool:
    return context.identity is not None and context.identity.through is not None


def identity_of(context: Any) -> Identity | None:
    """Who makes this call, himself or through a door; None where nothing is secured."""
    found = context.identity
    return found.identity if found is not None else None
