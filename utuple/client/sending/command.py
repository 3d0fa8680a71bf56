"""A command: to one device by the sCA server, or to every member that may know a matching device."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from utuple.client.parts import Parts
from utuple.client.routing.every_member import FanOut
from utuple.client.routing.outcome import PendingCommand, raise_refusals
from utuple.client.routing.retry import Tries
from utuple.client.routing.route import Target, is_simple, lifetime_at
from utuple.client.sending.receipt import Receipt, as_known_before, expired, not_known, receipt_of
from utuple.client.sending.simple_commands import ScaCalls
from utuple.cluster.line import Line
from utuple.errors import NotRegistered, OutcomeUnknown
from utuple.model.columns import MICROSECONDS, lifetime_us
from utuple.model.condition import AddressCondition, Equal, OneOf, Prefix, Present, Range
from utuple.model.key import key_of
from utuple.model.packed import packed
from utuple.model.utuple import Template, UTuple, datetime_of
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import templates_to_wire

_SHOWN = 5
"""Addresses of a `one_of` that a receipt names."""


async def send_command(
    parts: Parts, sca: ScaCalls, command: UTuple, tries: Tries, notify: str | None = None
) -> Receipt:
    pending = PendingCommand(command, notify)
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
    until_us = parts.now_us() + lifetime_us(command.lifetime_s)

    async def call(target: Target, line: Line, retry: bool) -> None:
        there = replace(command, lifetime_s=lifetime_at(target, command.lifetime_s))
        request = pb.CommandRequest(
            retry=retry,
            command=templates_to_wire([packed(there)], epochs={command.family: line.epoch}),
            confirm_us=round(parts.config.confirm_s * MICROSECONDS),
        )
        address = parts.lines.address_of(target.member)
        while True:
            answer = await parts.transport.command(address, request, parts.config.timeout_s)
            parts.lines.hear(answer.lines, answer.servers)
            raise_refusals(list(answer.refusals))
            found.extend(answer.devices)
            if not answer.more:
                return
            request.retry, request.after = True, answer.devices[-1].id

    fan_out: FanOut[None] = parts.fan_out(command)
    await fan_out.run(key_of(*command.family), call, tries)
    look, id_ = None, None
    if command.lifetime_s:
        id_, look = command.id, partial(_look, parts, command, until_us)
    return receipt_of(in_words(command), found, command.lifetime_s, id_, look)


async def _look(parts: Parts, command: UTuple, until_us: int, before: Receipt) -> Receipt:
    """At every member. What a member that has gone knew, the others were told; whoever had it keeps it in the receipt. Servers
    count its lifetime from when it came to them, and remember it for a while after that: so its end is looked at, too. Who is
    silent then may know better than the others: it can be looked at again."""
    line = await parts.lines.line(key_of(*command.family), parts.tries().deadline_s)
    is_over = parts.now_us() >= until_us

    async def ask(member: str) -> pb.CommandedAnswer | None:
        asked, limit_s = pb.CommandedRequest(id=command.id), parts.config.attempt_s
        try:
            return await parts.transport.commanded(parts.lines.address_of(member), asked, limit_s)
        except (NotRegistered, OutcomeUnknown):
            if not is_over:
                raise
            return None

    asked = [ask(member.name) for member in line.members if not member.suspended]
    answers = await asyncio.gather(*asked)
    said = [answer for answer in answers if answer is not None]
    left_us = max([until_us - parts.now_us(), *(answer.left_us for answer in said)])
    look = partial(_look, parts, command, until_us)
    found = [device for answer in said for device in answer.devices]
    now = receipt_of(before.command, found, max(0, left_us) / MICROSECONDS, command.id, look)
    if left_us > 0:
        return as_known_before(now, before)
    last = not_known(now) if None in answers else expired(now)
    return as_known_before(last, not_known(before))


def in_words(command: UTuple) -> str:
    """What a command was for and to whom, as a receipt says it: every condition, or it would read like a command to
    every device."""
    asked = command.metadata
    assert isinstance(asked, Template)
    to = [
        _at(asked.address),
        "" if asked.area is None else f"in {asked.area}",
        "" if asked.since_us is None else f"since {datetime_of(asked.since_us).isoformat()}",
        "" if asked.until_us is None else f"until {datetime_of(asked.until_us).isoformat()}",
    ]
    devices = " ".join(filter(None, to)) or "everywhere"
    return f"{'/'.join(command.family)} {devices} with {dict(command.data or {})}"


def _at(address: AddressCondition) -> str:
    match address:
        case Present():
            return ""
        case Equal(value):
            return f"at {value!r}"
        case OneOf(values):
            more = ["…"] if len(values) > _SHOWN else []
            return f"at one_of({', '.join([*map(repr, values[:_SHOWN]), *more])})"
        case Prefix(text):
            return f"at prefix({text!r})"
        case Range(low, None):
            return f"at at_least({low!r})"
        case Range(None, high):
            return f"at below({high!r})"
        case Range(low, high):
            return f"at between({low!r}, {high!r})"
