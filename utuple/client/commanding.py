"""A command: to one device by the sCA server, or to every member that may know a matching device."""

from __future__ import annotations

from dataclasses import replace

from utuple.client.attempt import PendingCommand, raise_refusals
from utuple.client.everywhere import Tour
from utuple.client.parts import Parts
from utuple.client.receipt import Receipt, receipt_of
from utuple.client.retry import Tries
from utuple.client.route import Stop, is_simple, lifetime_at
from utuple.client.simple import ScaCalls
from utuple.cluster.line import Line
from utuple.errors import OutcomeUnknown
from utuple.model.columns import MICROSECONDS
from utuple.model.condition import Equal
from utuple.model.key import key_of
from utuple.model.utuple import Kind, Template, UTuple
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import templated_to_wire


async def send_command(parts: Parts, sca: ScaCalls, command: UTuple, tries: Tries) -> Receipt:
    pending = PendingCommand(command)
    if is_simple(command):
        return receipt_of(in_words(command), await sca.command(command, tries, pending))
    try:
        return await _everywhere(parts, command, tries)
    except OutcomeUnknown as error:
        error.pending = pending
        raise


async def _everywhere(parts: Parts, command: UTuple, tries: Tries) -> Receipt:
    """Every device any member knows, also those that answered under a line that is old by now."""
    found: list[pb.Handover] = []

    async def visit(stop: Stop, line: Line, retry: bool) -> None:
        there = replace(command, lifetime_s=lifetime_at(stop, command.lifetime_s))
        request = pb.CommandRequest(
            retry=retry,
            command=templated_to_wire(there, {command.family: line.epoch}),
            confirm_us=round(parts.config.confirm_s * MICROSECONDS),
        )
        address = parts.lines.address_of(stop.member)
        answer = await parts.transport.command(address, request, parts.config.timeout_s)
        parts.lines.hear(answer.lines, answer.servers)
        raise_refusals(list(answer.refusals))
        found.extend(answer.devices)

    tour: Tour[None] = Tour(Kind.CA, parts.lines, parts.dice, parts.config)
    await tour.run(key_of(*command.family), visit, tries)
    return receipt_of(in_words(command), found)


def in_words(command: UTuple) -> str:
    """What a command was for, as a receipt says it."""
    assert isinstance(command.metadata, Template)
    address = command.metadata.address
    which = f" at {address.value!r}" if isinstance(address, Equal) else ""
    area = f" in {command.metadata.area}" if command.metadata.area else ""
    return f"{'/'.join(command.family)}{which}{area} with {dict(command.data or {})}"
