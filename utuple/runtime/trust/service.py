"""The calls of `Trust`, which every program of a secured cluster answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from utuple.errors import InvalidInput, UTupleError
from utuple.runtime.trust.guard import Guard, identity_of
from utuple.runtime.trust.refusal import cause_of
from utuple.security.grants import decode
from utuple.security.rights import words_for
from utuple.security.signed import Signed
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import refuse_unknown
from utuple.wire.status import abort

M = TypeVar("M", bound=Message)
Context = grpc.aio.ServicerContext[bytes, bytes]
Hear = Callable[[Signed], Awaitable[None]]
"""Newer grants: make them durable and put them in force."""


class TrustService:
    def __init__(self, guard: Guard, hear: Hear) -> None:
        self._guard = guard
        self._hear = hear

    def handlers(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            pb.DESCRIPTOR.services_by_name["Trust"].full_name,
            {
                "Grants": _handler(pb.GrantsRequest, self.grants),
                "Publish": _handler(pb.SignedGrants, self.publish),
                "Whoami": _handler(pb.WhoamiRequest, self.whoami),
                "Audit": _handler(pb.AuditRequest, self.audit),
            },
        )

    async def grants(self, request: pb.GrantsRequest, context: Any) -> pb.SignedGrants:
        return to_wire(self._guard.signed)

    async def publish(self, request: pb.SignedGrants, context: Any) -> pb.Published:
        """Older ones than those in force change nothing, nor do others of the same number, which two operators may have made at a time:
        whoever brings them is told; the audit knows of it."""
        given, identity = from_wire(request), identity_of(context)
        who = identity.uri if identity is not None else ""
        try:
            await self._hear(given)
        except InvalidInput as error:
            self._guard.audit.refused(who, "Publish", cause_of(error))
            raise
        if decode(given.content).number < self._guard.grants.number:
            self._guard.audit.refused(who, "Publish", "grants older than those in force")
        signed = self._guard.signed
        others = signed is not None and signed.content != given.content
        return pb.Published(number=self._guard.grants.number, others=others)

    async def whoami(self, request: pb.WhoamiRequest, context: Any) -> pb.WhoamiAnswer:
        identity, own = identity_of(context), self._guard.own.held
        assert identity is not None, "only a secured program answers this"
        return pb.WhoamiAnswer(
            identity=identity.uri,
            allowed=words_for(self._guard.grants, identity),
            program=own.identity.name,
            grants_number=self._guard.grants.number,
            until_us=own.until_us,
        )

    async def audit(self, request: pb.AuditRequest, context: Any) -> pb.AuditAnswer:
        audit = self._guard.audit
        audit.flush()
        return pb.AuditAnswer(
            lines=audit.after(request.after),
            head_number=audit.head.number,
            head_hash=audit.head.hash,
        )


def to_wire(given: Signed | None) -> pb.SignedGrants:
    if given is None:
        return pb.SignedGrants()
    return pb.SignedGrants(content=given.content, signature=given.signature)


def from_wire(message: pb.SignedGrants) -> Signed:
    return Signed(message.content, message.signature)


def _handler(
    kind: type[M], answer: Callable[[M, Any], Awaitable[Message]]
) -> grpc.RpcMethodHandler[bytes, bytes]:
    async def behave(raw: bytes, context: Context) -> bytes:
        try:
            return (await answer(_parsed(kind, raw), context)).SerializeToString()
        except UTupleError as error:
            await abort(context, error)
            raise  # abort has raised already

    return grpc.unary_unary_rpc_method_handler(behave)


def _parsed(kind: type[M], raw: bytes) -> M:
    try:
        message = kind.FromString(raw)
    except DecodeError:
        raise InvalidInput("message", raw, f"must be a {kind.DESCRIPTOR.name}") from None
    refuse_unknown(message, "request")
    return message
