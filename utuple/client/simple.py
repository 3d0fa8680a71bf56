"""Calls to the sCA servers: devices made known there, and simple commands, gathered into calls."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from utuple.client.attempt import raise_refusals, refused
from utuple.client.lane import Carry, Lane
from utuple.client.parts import Parts
from utuple.client.retry import Tries
from utuple.client.route import sca_server
from utuple.errors import NotRegistered, OutcomeUnknown, Unavailable
from utuple.model.columns import MICROSECONDS, columns_of
from utuple.model.condition import Equal
from utuple.model.key import key_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.model.value import encode_data
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_to_wire, family_to_wire, pack

_COMMAND_BYTES = 100


@dataclass(slots=True, eq=False)
class Simple:
    """One simple command on its way."""

    id: bytes
    family: Family
    address: str
    payload: bytes
    rows: int = 1
    sent: bool = False
    may_move: bool = False
    answer: asyncio.Future[list[pb.Handover]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def size_bytes(self) -> int:
        return len(self.payload) + _COMMAND_BYTES

    def joins(self, shared: dict[object, object]) -> bool:
        return True


class ScaCalls:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lanes: dict[str, Lane[Simple]] = {}

    async def server_for(self, utuple: UTuple) -> str:
        """Which sCA server knows this CF, or the device this simple command is for."""
        lines = self._parts.lines
        if not lines.sca_names:
            await lines.look_up(key_of(*utuple.family))
        if not lines.sca_names:
            raise Unavailable("no sCA server is known to the assignment managers")
        return sca_server(utuple.family, _address(utuple), lines.sca_names)

    async def register(self, device: UTuple, tries: Tries) -> str:
        """Make this CF known; the sCA server that has it."""
        request = pb.ScaRegisterRequest(devices=columns_to_wire(columns_of([device])))
        while True:
            try:
                name = await self.server_for(device)
                address = self._parts.lines.address_of(name)
                answer = await self._parts.transport.sca_register(
                    address, request, self._parts.config.timeout_s
                )
                raise_refusals(list(answer.refusals))
                return name
            except (NotRegistered, OutcomeUnknown) as error:
                self._parts.lines.refresh(key_of(*device.family))
                tries = await self._parts.wait_after(error, tries)

    async def command(self, command: UTuple, tries: Tries, pending: object) -> list[pb.Handover]:
        """The devices it met. Sent again until the time is over; a device drops what it has."""
        while True:
            try:
                server = await self.server_for(command)
                found: list[pb.Handover] = await self._lane(server).send(
                    _simple(command), tries.deadline_s
                )
                return found
            except (NotRegistered, OutcomeUnknown) as error:
                self._parts.lines.refresh(key_of(*command.family))
                tries = await self._parts.wait_after(error, tries, pending)

    def _lane(self, server: str) -> Lane[Simple]:
        lane = self._lanes.get(server)
        if lane is None:
            config = self._parts.config
            lane = self._lanes[server] = Lane(
                server, self._carry_to(server), config, config.command_calls_in_flight
            )
        return lane

    def _carry_to(self, server: str) -> Carry[Simple]:
        async def carry(commands: Sequence[Simple]) -> None:
            config = self._parts.config
            request = request_of(commands, round(config.confirm_s * MICROSECONDS))
            answer = await self._parts.transport.sca_command(
                self._parts.lines.address_of(server), request, config.timeout_s
            )
            distribute(commands, answer)

        return carry

    async def close(self) -> None:
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))


def request_of(commands: Sequence[Simple], confirm_us: int) -> pb.SimpleCommands:
    numbers: dict[Family, int] = {}
    which = array("I", [numbers.setdefault(one.family, len(numbers)) for one in commands])
    return pb.SimpleCommands(
        families=[family_to_wire(family) for family in numbers],
        family=pack(which),
        ids=b"".join([one.id for one in commands]),
        addresses=[one.address for one in commands],
        payloads=[one.payload for one in commands],
        confirm_us=confirm_us,
    )


def distribute(commands: Sequence[Simple], answer: pb.SimpleReceipts) -> None:
    found: list[list[pb.Handover]] = [[] for _ in commands]
    for row, handover in zip(answer.rows, answer.devices, strict=False):
        found[row].append(handover)
    refusals = {row: refusal for refusal in answer.refusals for row in refusal.rows}
    for row, command in enumerate(commands):
        if command.answer.done():
            continue
        if row in refusals:
            command.answer.set_exception(refused(refusals[row]))
        else:
            command.answer.set_result(found[row])


def _simple(command: UTuple) -> Simple:
    return Simple(command.id, command.family, _address(command), encode_data(command.data or {}))


def _address(utuple: UTuple) -> str:
    metadata = utuple.metadata
    if isinstance(metadata, Exact):
        return metadata.address
    assert isinstance(metadata.address, Equal)
    address: str = metadata.address.value
    return address
