"""The operator's calls: short time-outs, and an answer or a plain word about why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import grpc

from utuple.cluster.line import Line, ServerInfo
from utuple.errors import Unavailable
from utuple.runtime.channel import open_channel
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, server_to_wire
from utuple.wire.utuple_pb2_grpc import AssignmentStub, ScaStub, ServerStub

CALL_LIMIT_S = 2.0
"""These calls read memory; a program that needs longer is as good as unreachable to an operator."""

ADOPT_LIMIT_S = 15.0
"""Adopting writes to the database."""

Answer = TypeVar("Answer")


async def _call(
    address: str, ask: Callable[[grpc.aio.Channel], Awaitable[Answer]]
) -> Answer | None:
    """None: no answer in time, or not from a program that understands the question."""
    async with open_channel(address) as channel:
        try:
            return await ask(channel)
        except grpc.aio.AioRpcError:
            return None


async def table(address: str) -> pb.TableAnswer | None:
    return await _call(
        address,
        lambda channel: AssignmentStub(channel).Table(pb.TableRequest(), timeout=CALL_LIMIT_S),
    )


async def server_status(address: str) -> pb.ServerStatus | None:
    return await _call(
        address,
        lambda channel: ServerStub(channel).Status(pb.StatusRequest(), timeout=CALL_LIMIT_S),
    )


async def sca_status(address: str) -> pb.ScaStatus | None:
    return await _call(
        address, lambda channel: ScaStub(channel).Status(pb.StatusRequest(), timeout=CALL_LIMIT_S)
    )


async def adopt(address: str, lines: Sequence[Line], servers: Sequence[ServerInfo]) -> bool:
    """Give a server the first table; it keeps its own lines. False: no answer, try again."""
    request = pb.AdoptRequest(
        lines=[line_to_wire(line) for line in lines],
        servers=[server_to_wire(server) for server in servers],
    )
    answer = await _call(
        address, lambda channel: ServerStub(channel).Adopt(request, timeout=ADOPT_LIMIT_S)
    )
    return answer is not None


async def first_table_of(addresses: Sequence[str]) -> pb.TableAnswer:
    """The table of the first manager, in the order given, that answers."""
    for answer in await asyncio.gather(*(table(address) for address in addresses)):
        if answer is not None:
            return answer
    raise Unavailable(
        f"no assignment manager answers at {', '.join(addresses)}: start a cluster with `utuple up`, "
        "or say where it is with --at HOST:PORT or UTUPLE_AT"
    )
