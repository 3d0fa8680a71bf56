"""The monitor's calls. None means: no good answer in time; the next poll asks again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from load_monitor.config import Config
from load_monitor.observing import Report
from load_monitor.wire import report_from_wire
from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.move import Move
from utuple.errors import InvalidInput
from utuple.runtime.channels import Channels
from utuple.runtime.logs import Log
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, move_to_wire, server_from_wire, server_to_wire
from utuple.wire.utuple_pb2_grpc import AssignmentStub, ServerStub

_log = Log("load_monitor.transport")
_SERVING = "serving"


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """What a manager knows."""

    lines: tuple[Line, ...]
    servers: tuple[ServerInfo, ...]


@dataclass(frozen=True, slots=True)
class OrderAnswer:
    """A home's answer to an order."""

    accepted: bool
    reason: str = ""
    id: bytes = b""


class Calls(Protocol):
    """The seam to the cluster; its twin is in the tests."""

    async def table(self, manager: str) -> KnownCluster | None: ...

    async def report(self, address: str) -> Report | None: ...

    async def move(self, address: str, move: Move) -> OrderAnswer | None: ...

    async def keep_only(self, addresses: Iterable[str]) -> None:
        """The rest is not called any more."""


class GrpcCalls:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._channels = Channels()

    async def table(self, manager: str) -> KnownCluster | None:
        answer = await self._channels.answer(
            manager,
            lambda channel: AssignmentStub(channel).Table(
                pb.TableRequest(), timeout=self._config.call_limit_s
            ),
        )
        if answer is None:
            return None
        lines = tuple(map(line_from_wire, answer.lines))
        return KnownCluster(lines, tuple(map(server_from_wire, answer.servers)))

    async def report(self, address: str) -> Report | None:
        """A server that answers without serving, because its PostgreSQL is gone, is as good as silent."""
        status = await self._channels.answer(
            address,
            lambda channel: ServerStub(channel).Status(
                pb.StatusRequest(brief=True), timeout=self._config.call_limit_s
            ),
        )
        if status is None or status.state != _SERVING:
            return None
        try:
            return report_from_wire(status)
        except InvalidInput as error:
            _log.warning("status refused", server=status.name, reason=error)
            return None

    async def move(self, address: str, move: Move) -> OrderAnswer | None:
        message, limit_s = move_to_wire(move), self._config.order_limit_s
        answer = await self._channels.answer(
            address, lambda channel: ServerStub(channel).Move(message, timeout=limit_s)
        )
        return (
            OrderAnswer(answer.accepted, answer.reason, answer.id) if answer is not None else None
        )

    async def leave(self, address: str) -> bool:
        answer = await self._channels.answer(
            address,
            lambda channel: ServerStub(channel).Leave(
                pb.LeaveRequest(), timeout=self._config.order_limit_s
            ),
        )
        return answer is not None and answer.leaving

    async def tell_gone(self, manager: str, server: ServerInfo) -> None:
        """It was drained and stopped: managers, and whoever asks them, forget it."""
        message = pb.Announcement(server=server_to_wire(server))
        await self._channels.answer(
            manager,
            lambda channel: AssignmentStub(channel).Announce(
                message, timeout=self._config.call_limit_s
            ),
        )

    async def keep_only(self, addresses: Iterable[str]) -> None:
        await self._channels.keep_only(addresses)
