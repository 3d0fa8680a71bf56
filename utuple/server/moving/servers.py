"""The other uTupleServers, as a server calls them while load moves: by name, over one seam.

`transport.py` has the real seam, tests have theirs. In a steady state servers have nothing to say to each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from google.protobuf.message import Message

from utuple.cluster.line import Line, ServerInfo
from utuple.cluster.table import Table
from utuple.errors import NotRegistered, OutcomeUnknown
from utuple.server.ports import MovePort
from utuple.store.contract import StoreUnavailable
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_from_wire, line_to_wire, server_to_wire

_LONGEST_PAUSE = 10
"""A call that fails is repeated after pauses that double, up to this many times the first."""


class NotReady(Exception):
    """It may be later."""


class GivenUp(Exception):
    """The move cannot be made."""


TRANSIENT = (NotRegistered, OutcomeUnknown, NotReady, StoreUnavailable)
"""What may pass: try again. (A search that failed does not make the engine open its store anew.)"""


class ServerTransport(Protocol):
    """The seam."""

    async def call(self, address: str, method: str, request: Message, timeout_s: float) -> Any:
        """The answer to that call, such as "learn" for the protocol's `Learn`. Raises Unavailable if it was never sent, OutcomeUnknown if
        no answer came."""


class RetryPauses:
    """The pauses between repeated calls to one server."""

    def __init__(self, first_s: float) -> None:
        self._next_s, self._most_s = first_s, first_s * _LONGEST_PAUSE

    async def wait(self) -> None:
        await asyncio.sleep(self._next_s)
        self._next_s = min(self._next_s * 2, self._most_s)


class OtherServers:
    def __init__(self, port: MovePort, transport: ServerTransport) -> None:
        self._port = port
        self._transport = transport

    async def learn(self, name: str, request: pb.LearnRequest) -> pb.LearnAnswer:
        answer: pb.LearnAnswer = await self._call(name, "learn", request)
        return answer

    async def make_ready(
        self,
        name: str,
        move: bytes,
        lines: Sequence[Line],
        *,
        learned: tuple[int, bytes] | None = None,
        shipped: int | None = None,
    ) -> None:
        """It is durably ready for these lines, and knows or holds what it must. Raises if it is not, or never will be."""
        count, digest = learned or (0, b"")
        request = pb.ReadyRequest(
            move=move,
            lines=map(line_to_wire, lines),
            servers=self._infos(lines),
            count=count,
            digest=digest,
            learned=learned is not None,
            rows=shipped or 0,
            shipped=shipped is not None,
        )
        answer: pb.ReadyAnswer = await self._call(name, "ready", request)
        if answer.never:
            raise GivenUp(answer.reason)
        if not answer.ready:
            raise NotReady(f"not ready: {answer.reason}")

    async def hear(self, name: str, lines: Sequence[Line]) -> bool:
        """It is told these lines, and of the drains that are committed; has it taken all of them?"""
        request = pb.HearRequest(
            lines=map(line_to_wire, lines),
            servers=self._infos(lines),
            settled=self._port.writer.moves.home.settled_for(name),
        )
        answer: pb.HearAnswer = await self._call(name, "hear", request)
        held = Table(map(line_from_wire, answer.lines))
        return all(map(held.reaches, lines))

    async def forget(self, name: str, move: bytes) -> None:
        await self._call(name, "forget", pb.ForgetRequest(move=move))

    async def vacancy(self, name: str, line: Line) -> str:
        """Empty if it holds nothing of the line, in which it is off; else why it cannot leave."""
        request = pb.VacantRequest(line=line_to_wire(line))
        answer: pb.VacantAnswer = await self._call(name, "vacant", request)
        return "" if answer.vacant else answer.reason

    async def older(self, name: str, line: Line) -> list[int]:
        """Of each layout of the line's past: the last seq of what this member may hold of it, 0 if nothing."""
        answer: pb.OlderAnswer = await self._call(
            name, "older", pb.OlderRequest(line=line_to_wire(line))
        )
        if answer.reason or len(answer.upto) != len(line.past):
            raise NotReady(f"{name} cannot say what it holds: {answer.reason}")
        return list(answer.upto)

    async def ship(self, name: str, move: bytes, line: Line, heir: ServerInfo) -> int | None:
        """How many rows it has brought to the heir, once all are there; None: it is at work."""
        request = pb.ShipRequest(move=move, line=line_to_wire(line), heir=server_to_wire(heir))
        # It answers after `other_s` at the latest, so it is given twice as long.
        answer: pb.ShipAnswer = await self._call(name, "ship", request, patience=2)
        if answer.reason:
            raise NotReady(answer.reason)
        return answer.rows if answer.done else None

    async def receive(self, name: str, request: pb.TakeRequest) -> pb.TakeAnswer:
        answer: pb.TakeAnswer = await self._call(name, "take", request)
        return answer

    def info(self, name: str) -> ServerInfo:
        info = self._port.address_of(name)
        if info is None:
            raise NotReady(f"the address of {name} is not known")
        return info

    def retry_pauses(self) -> RetryPauses:
        return RetryPauses(self._port.config.tell_again_s)

    def _infos(self, lines: Sequence[Line]) -> list[pb.ServerInfo]:
        names = sorted({member.name for line in lines for member in line.members})
        found = map(self._port.address_of, names)
        return [server_to_wire(info) for info in found if info is not None]

    async def _call(self, name: str, method: str, request: Message, patience: int = 1) -> Any:
        timeout_s = self._port.config.other_s * patience
        return await self._transport.call(self.info(name).address, method, request, timeout_s)
