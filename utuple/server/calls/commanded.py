"""What has become of a stored command, device by device, and what a device has acknowledged: looked at, and changed in nothing."""

from __future__ import annotations

from contextlib import aclosing
from itertools import islice

from utuple.model.utuple import Kind, check_id
from utuple.runtime.clock import now_us
from utuple.security.identity import Identity
from utuple.server.delivering.standings import Standing
from utuple.server.writing.engine import Engine
from utuple.store.contract import Search
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import templates_to_wire

MOST = 10_000
"""Devices, or commands, in one answer."""


async def commanded(
    engine: Engine, request: pb.CommandedRequest, caller: Identity | None = None
) -> pb.CommandedAnswer:
    """Every CF here that it meets, and those that have it and are gone. Once its lifetime is over a command is known for a while:
    it says which devices have it in the end."""
    if request.device:
        return await _acknowledged(engine, check_id(request.device), caller)
    now, commands = now_us(), engine.delivering.commands
    known = engine.writer.templates.get(check_id(request.id))
    if known is not None and known.packed.kind is not Kind.CA:
        return pb.CommandedAnswer()
    standing = commands.standings.look(request.id, known, now)
    if standing is None:
        return pb.CommandedAnswer()
    stored = standing.stored
    if engine.judge is not None and caller is not None:
        engine.judge.check_commanded(stored.packed, caller)
    shown = stored.packed._replace(reader="")
    answer = pb.CommandedAnswer(
        known=True,
        command=templates_to_wire([shown]),
        left_us=max(0, stored.expires_us - now),
    )
    devices = dict(standing.have_it)
    search = Search(stored.utuple, 0, engine.delivering.cursors.committed, now)
    async with aclosing(engine.store.search(search)) as found:
        async for batch in found:
            devices |= zip(batch.columns.each_id(), batch.columns.addresses, strict=True)
            if len(devices) > MOST:
                answer.more = True
                break
    for formal, address in islice(devices.items(), MOST):
        handed = _handed(engine, formal, standing, now)
        answer.devices.add(id=formal, address=address, handed=handed)
    return answer


async def _acknowledged(
    engine: Engine, device: bytes, caller: Identity | None
) -> pb.CommandedAnswer:
    """What a device has acknowledged here, its program asks when it comes back at another member."""
    row = await engine.delivering.commands.row_of(device)
    if row is None:
        return pb.CommandedAnswer()
    if engine.judge is not None and caller is not None:
        engine.judge.check_serve(row, caller)
    commands = engine.delivering.commands.acknowledged_by(row)
    return pb.CommandedAnswer(known=True, acknowledged=b"".join(commands[-MOST:]))


def _handed(engine: Engine, formal: bytes, standing: Standing, now: int) -> pb.Handed.ValueType:
    delivering, command = engine.delivering, standing.stored.packed.id
    devices, handover = delivering.devices, delivering.commands.handovers.get(command)
    if delivering.commands.has_acknowledged(formal, standing.stored):
        return pb.ACKNOWLEDGED
    has_it = formal in standing.have_it or devices.has(formal, command)
    if has_it or (handover is not None and formal in handover.have_it):
        return pb.HANDED_OVER
    device, is_over = devices.get(formal), standing.stored.expires_us <= now
    if is_over and not standing.is_whole:
        return pb.HANDED_UNKNOWN
    if device is None or (is_over and command not in device.given):
        return pb.NOT_CONNECTED
    return pb.NOT_CONFIRMED
