"""The operator's calls: short time-outs, and an answer or a plain word about why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import grpc

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.move import Move
from utuple.errors import NotAllowed, Unavailable
from utuple.runtime.channel import open_channel
from utuple.runtime.trust.refusal import why_not_connected
from utuple.security.own import ON_BEHALF, OWN
from utuple.transport.channel import Channel
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, move_to_wire, server_to_wire
from utuple.wire.status import error_from
from utuple.wire.utuple_pb2_grpc import AssignmentStub, MonitorStub, ScaStub, ServerStub

CALL_LIMIT_S = 2.0
"""These calls read memory; a program that needs longer is as good as unreachable to an operator."""

WRITE_LIMIT_S = 15.0
"""Adopting, leaving and orders are answered once they are durable."""

GONE = "gone"
"""The role by which managers forget a server that was drained and stopped."""

Answer = TypeVar("Answer")
_REFUSED = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)


async def call(address: str, ask: Callable[[grpc.aio.Channel], Awaitable[Answer]]) -> Answer | None:
    """None: no answer in time, or not from a program that understands the question."""
    async with open_channel(address, metadata=ON_BEHALF.get()) as channel:
        try:
            return await ask(channel)
        except grpc.aio.AioRpcError as error:
            if error.code() in _REFUSED:
                raise error_from(error, sent=f"a call to {address}") from None
            return None


async def table(address: str) -> pb.TableAnswer | None:
    return await call(
        address,
        lambda channel: AssignmentStub(channel).Table(pb.TableRequest(), timeout=CALL_LIMIT_S),
    )


async def server_status(
    address: str, *, brief: bool = False, spread: bool = False
) -> pb.ServerStatus | None:
    request = pb.StatusRequest(brief=brief, spread=spread)
    return await call(
        address, lambda channel: ServerStub(channel).Status(request, timeout=CALL_LIMIT_S)
    )


async def sca_status(address: str) -> pb.ScaStatus | None:
    return await call(
        address, lambda channel: ScaStub(channel).Status(pb.StatusRequest(), timeout=CALL_LIMIT_S)
    )


async def adopt(
    address: str, lines: Sequence[Line], servers: Sequence[ServerInfo]
) -> pb.AdoptAnswer | None:
    """Give a server the first table; it keeps its own lines. None: no answer, try again."""
    request = pb.AdoptRequest(
        lines=[line_to_wire(line) for line in lines],
        servers=[server_to_wire(server) for server in servers],
    )
    return await call(
        address, lambda channel: ServerStub(channel).Adopt(request, timeout=WRITE_LIMIT_S)
    )


async def monitor_status(address: str) -> pb.MonitorStatus | None:
    return await call(
        address,
        lambda channel: MonitorStub(channel).Status(pb.StatusRequest(), timeout=CALL_LIMIT_S),
    )


async def move(address: str, move: Move) -> pb.MoveAnswer:
    """To the home of the section."""
    message = move_to_wire(move)
    return await must(
        address,
        f"the order to {address}",
        lambda channel: ServerStub(channel).Move(message, timeout=WRITE_LIMIT_S),
    )


async def leave(address: str, *, stay: bool = False) -> pb.LeaveAnswer:
    return await must(
        address,
        f"Leave to {address}",
        lambda channel: ServerStub(channel).Leave(
            pb.LeaveRequest(stay=stay), timeout=WRITE_LIMIT_S
        ),
    )


async def forget_reader(address: str, reader: str) -> pb.ForgetReaderAnswer:
    return await must(
        address,
        f"ForgetReader to {address}",
        lambda channel: ServerStub(channel).ForgetReader(
            pb.ForgetReaderRequest(reader=reader), timeout=WRITE_LIMIT_S
        ),
    )


async def parked(address: str, request: pb.ParkedRequest) -> pb.ParkedAnswer:
    return await must(
        address,
        f"Parked to {address}",
        lambda channel: ServerStub(channel).Parked(request, timeout=WRITE_LIMIT_S),
    )


async def commanded(address: str, id_: bytes) -> pb.CommandedAnswer:
    return await must(
        address,
        f"Commanded to {address}",
        lambda channel: ServerStub(channel).Commanded(
            pb.CommandedRequest(id=id_), timeout=WRITE_LIMIT_S
        ),
    )


async def cancel(address: str, cancels: Sequence[pb.Cancel]) -> list[str]:
    """EFs, CFs or CAs are forgotten; why those that are not were refused."""
    answer = await must(
        address,
        f"cancels to {address}",
        lambda channel: ServerStub(channel).Register(
            pb.RegisterRequest(cancels=cancels), timeout=WRITE_LIMIT_S
        ),
    )
    return [pb.Reason.Name(refusal.reason).lower() for refusal in answer.refusals]


async def announce_gone(managers: Sequence[str], server: ServerInfo) -> int:
    """Managers, and whoever asks them, forget this server; how many have heard. They tell each other."""
    message = pb.Announcement(server=server_to_wire(server))
    heard = await asyncio.gather(
        *(
            call(
                address,
                lambda channel: AssignmentStub(channel).Announce(message, timeout=CALL_LIMIT_S),
            )
            for address in managers
        )
    )
    return sum(answer is not None for answer in heard)


async def must(
    address: str, sent: str, ask: Callable[[grpc.aio.Channel], Awaitable[Answer]]
) -> Answer:
    async with open_channel(address, metadata=ON_BEHALF.get()) as channel:
        try:
            return await ask(channel)
        except grpc.aio.AioRpcError as error:
            raise error_from(error, sent=sent) from None


async def first_table_of(addresses: Sequence[str]) -> pb.TableAnswer:
    """The table of the first manager, in the order given, that answers."""
    for answer in await asyncio.gather(*(table(address) for address in addresses)):
        if answer is not None:
            return answer
    why = await _why_silent(addresses[0])
    raise Unavailable(
        f"no assignment manager answers at {', '.join(addresses)}: {why}start a cluster with `utuple up`, "
        "or say where it is with --at HOST:PORT or UTUPLE_AT"
    )


async def _why_silent(address: str) -> str:
    """Raises NotAllowed if it is a matter of the credentials."""
    async with open_channel(address) as channel:
        assert isinstance(channel, Channel)
        try:
            await channel.connected(wait=False)
        except ConnectionError:
            reason = why_not_connected(channel, address, OWN.get())
            if isinstance(reason, NotAllowed):
                raise reason from None
            return "" if "nothing listens" in str(reason) else f"{reason}; or "
    return ""
