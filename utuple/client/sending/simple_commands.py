"""Calls to the sCA servers: devices made known there, and simple commands, gathered into calls.

One command and many go the same way: a slice of columns, which shares a call with what else is waiting.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from utuple.client.parts import Parts
from utuple.client.routing.outcome import raise_refusals, refused
from utuple.client.routing.retry import Tries
from utuple.client.routing.route import sca_server
from utuple.client.sending.receipt import Handovers
from utuple.client.sending.rows import Commands
from utuple.client.sending.send_queue import SendBatch, SendQueue
from utuple.cluster.line import NO_SCA
from utuple.errors import Closed, NotRegistered, OutcomeUnknown, Refused, Unavailable
from utuple.model.columns import MICROSECONDS, columns_of
from utuple.model.condition import Equal
from utuple.model.key import key_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.model.value import encode_data
from utuple.runtime.logs import Log
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire, family_to_wire, pack

_log = Log("utuple.client.sending.simple_commands")
_COMMAND_BYTES = 100


@dataclass(frozen=True, slots=True)
class CommandsOutcome:
    """What became of a slice: whom its commands met, and who was refused."""

    handovers: Handovers
    refused: Mapping[int, Refused]


@dataclass(slots=True, eq=False)
class Slice:
    """Simple commands on their way to one sCA server."""

    commands: Commands
    sent: bool = False
    may_go_elsewhere: bool = False
    send_by_s: float = math.inf
    answer: asyncio.Future[CommandsOutcome] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def rows(self) -> int:
        return len(self.commands.addresses)

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.commands.payloads)) + _COMMAND_BYTES * self.rows

    def joins(self, shared: dict[object, object]) -> bool:
        return True


class ScaCalls:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._queues: dict[str, SendQueue[Slice]] = {}
        self._closed = False

    async def servers_for(self, family: Family, deadline_s: float) -> list[str]:
        """The sCA servers there are."""
        lines = self._parts.lines
        if not lines.sca_names:
            await lines.look_up(key_of(*family), deadline_s)
        if not lines.sca_names:
            raise Unavailable(NO_SCA)
        return lines.sca_names

    async def server_for(self, device: UTuple, deadline_s: float) -> str:
        """Which sCA server knows this CF."""
        assert isinstance(device.metadata, Exact)
        names = await self.servers_for(device.family, deadline_s)
        return sca_server(device.family, device.metadata.address, names)

    async def register(self, device: UTuple, tries: Tries) -> str:
        """Make this CF known; the sCA server that has it."""
        request = pb.ScaRegisterRequest(devices=columns_to_wire(columns_of([device])))
        while True:
            try:
                name = await self.server_for(device, tries.deadline_s)
                address = self._parts.lines.address_of(name)
                left_s = max(0.0, tries.deadline_s - asyncio.get_running_loop().time())
                answer = await self._parts.transport.sca_register(address, request, left_s)
                raise_refusals(list(answer.refusals))
                return name
            except (NotRegistered, OutcomeUnknown, Closed) as error:
                if not tries.failed:
                    _log.warning("waiting for an sCA server", reason=error)
                self._parts.lines.refresh(key_of(*device.family))
                tries = await self._parts.retrier.next_attempt(tries, error, {})

    async def command(
        self, command: UTuple, tries: Tries, pending: object
    ) -> Sequence[pb.Handover]:
        """The devices it met."""
        commands = one_command(command)
        met = await self.carry(commands, tries, pending)
        for refusal in met.refused.values():
            raise refusal
        return met.handovers.of(0, commands.addresses[0])

    async def carry(self, commands: Commands, tries: Tries, pending: object) -> CommandsOutcome:
        """All of them, each to the sCA server that knows its device: looked at anew with every attempt. Sent
        again until the time is over; a device drops what it has."""
        split: list[list[int]] = []
        while True:
            try:
                names = await self.servers_for(commands.families[0], tries.deadline_s)
                parts = by_server(commands, names)
                split = list(parts.values())
                if len(split) > 1:
                    break
                queue = self._queue(next(iter(parts)))
                found: CommandsOutcome = await queue.send(Slice(commands), tries.deadline_s)
                return found
            except (NotRegistered, OutcomeUnknown, Closed) as error:
                self._parts.lines.refresh(key_of(*commands.families[0]))
                tries = await self._parts.retrier.next_attempt(tries, error, {}, pending=pending)
        met = await asyncio.gather(
            *(self.carry(commands.take(rows), tries, pending) for rows in split)
        )
        return joined(split, met)

    def _queue(self, server: str) -> SendQueue[Slice]:
        if self._closed:
            raise Closed("this space is closed")
        queue = self._queues.get(server)
        if queue is None:
            config = self._parts.config
            queue = self._queues[server] = SendQueue(
                server, self._call_to(server), config, config.command_calls_in_flight
            )
        return queue

    def _call_to(self, server: str) -> SendBatch[Slice]:
        async def carry(slices: Sequence[Slice]) -> None:
            config = self._parts.config
            request = request_of(slices, round(config.confirm_s * MICROSECONDS))
            answer = await self._parts.transport.sca_command(
                self._parts.lines.address_of(server), request, config.timeout_s
            )
            distribute(slices, answer)

        return carry

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(queue.close() for queue in self._queues.values()))


def by_server(commands: Commands, names: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each sCA server."""
    if len(names) == 1:
        return {names[0]: []}
    found: dict[str, list[int]] = {}
    for row, address in enumerate(commands.addresses):
        found.setdefault(sca_server(_family(commands, row), address, names), []).append(row)
    return found


def joined(split: Sequence[Sequence[int]], met: Sequence[CommandsOutcome]) -> CommandsOutcome:
    """What the parts of a slice met, in the rows of the slice."""
    pairs = list(zip(split, met, strict=True))
    found = sorted(
        (rows[row], id_, handed) for rows, one in pairs for row, id_, handed in one.handovers
    )
    return CommandsOutcome(
        Handovers(
            [row for row, _, _ in found],
            b"".join([id_ for _, id_, _ in found]),
            bytes([handed for _, _, handed in found]),
        ),
        {rows[row]: error for rows, one in pairs for row, error in one.refused.items()},
    )


def request_of(slices: Sequence[Slice], confirm_us: int) -> pb.SimpleCommands:
    numbers: dict[Family, int] = {}
    which = array("I")
    for one in slices:
        own = [numbers.setdefault(family, len(numbers)) for family in one.commands.families]
        which.extend(map(own.__getitem__, one.commands.family))
    return pb.SimpleCommands(
        families=[family_to_wire(family) for family in numbers],
        family=pack(which),
        ids=b"".join([one.commands.ids for one in slices]),
        addresses=[address for one in slices for address in one.commands.addresses],
        payloads=[payload for one in slices for payload in one.commands.payloads],
        confirm_us=confirm_us,
    )


def distribute(slices: Sequence[Slice], answer: pb.SimpleReceipts) -> None:
    """Each slice its own. The server answers row by row in their order."""
    met = Handovers(list(answer.rows), answer.ids, answer.handed)
    wrong = {row: refused(refusal) for refusal in answer.refusals for row in refusal.rows}
    first = 0
    for one in slices:
        end = first + one.rows
        if not one.answer.done():
            own_wrong = {row - first: error for row, error in wrong.items() if first <= row < end}
            one.answer.set_result(CommandsOutcome(met.between(first, end), own_wrong))
        first = end


def one_command(command: UTuple) -> Commands:
    address = getattr(command.metadata, "address", None)
    assert isinstance(address, Equal)
    return Commands(
        (command.family,),
        array("I", [0]),
        command.id,
        [address.value],
        [encode_data(command.data or {})],
    )


def _family(commands: Commands, row: int) -> Family:
    return commands.families[commands.family[row]]
