"""The operator's calls about who may do what: grants are given to every program, and asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from utuple.admin.transport import (
    CALL_LIMIT_S,
    GONE,
    WRITE_LIMIT_S,
    call,
    first_table_of,
    must,
)
from utuple.security.signed import Signed
from utuple.wire import utuple_pb2 as pb
from utuple.wire.utuple_pb2_grpc import TrustStub

_ATTEMPTS = 3
_AGAIN_S = 0.3
"""Between attempts to give a program newer grants."""


async def programs_of(managers: Sequence[str]) -> dict[str, str]:
    """Every program that the managers know, with its address."""
    table = await first_table_of(managers)
    infos = [*table.servers, *(status.manager for status in table.managers)]
    return {info.name: info.address for info in infos if info.role != GONE}


async def publish(addresses: Iterable[str], given: Signed) -> list[pb.Published | None]:
    """To each of these; what is in force there then, None where nobody answers. Those that are away hear of it
    from the managers when they are back."""
    message = pb.SignedGrants(content=given.content, signature=given.signature)
    return list(await asyncio.gather(*(_publish(address, message) for address in addresses)))


async def _publish(address: str, message: pb.SignedGrants) -> pb.Published | None:
    """A program that is busy, or opens its store anew, is asked again: a revocation should not wait for its turn."""
    for _ in range(_ATTEMPTS):
        answer = await call(
            address, lambda channel: TrustStub(channel).Publish(message, timeout=WRITE_LIMIT_S)
        )
        if answer is not None:
            return answer
        await asyncio.sleep(_AGAIN_S)
    return None


async def grants_at(address: str) -> Signed | None:
    """Those a program holds; None if it has none."""
    answer = await must(
        address,
        f"Grants to {address}",
        lambda channel: TrustStub(channel).Grants(pb.GrantsRequest(), timeout=CALL_LIMIT_S),
    )
    return Signed(answer.content, answer.signature) if answer.content else None


async def whoami(address: str) -> pb.WhoamiAnswer:
    return await must(
        address,
        f"Whoami to {address}",
        lambda channel: TrustStub(channel).Whoami(pb.WhoamiRequest(), timeout=CALL_LIMIT_S),
    )


async def whoami_if_any(address: str) -> pb.WhoamiAnswer | None:
    """None: it does not answer, or is not secured."""
    return await call(
        address,
        lambda channel: TrustStub(channel).Whoami(pb.WhoamiRequest(), timeout=CALL_LIMIT_S),
    )


async def audit_of(address: str) -> tuple[list[bytes], int, str]:
    """All entries of a program, and the end of its chain as it says it."""
    lines: list[bytes] = []
    while True:
        request = pb.AuditRequest(after=len(lines))
        answer = await must(
            address,
            f"Audit to {address}",
            lambda channel: TrustStub(channel).Audit(request, timeout=CALL_LIMIT_S),  # noqa: B023
        )
        lines += answer.lines
        if not answer.lines or len(lines) >= answer.head_number:
            return lines, int(answer.head_number), answer.head_hash
