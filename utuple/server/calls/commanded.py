"""What has become of a stored command, device by device, and what a device has acknowledged: looked at, and changed in nothing."""

from __future__ import annotations

from contextlib import aclosing

from utuple.model.utuple import Kind, check_id
from utuple.runtime.clock import now_us
from utuple.security.identity import Identity
from utuple.server.writing.engine import Engine
from utuple.store.contract import Search, StoredTemplate
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import templates_to_wire

MOST = 10_000
"""Devices, or commands, in one answer."""


async def commanded(
    engine: Engine, request: pb.CommandedRequest, caller: Identity | None = None
) -> pb.CommandedAnswer:
    """Every CF here that it meets. Once its lifetime is over a command is known for a while to whoever has asked before: it says
    which devices have it in the end."""
    if request.device:
        return await _acknowledged(engine, check_id(request.device), caller)
    now = now_us()
    stored = engine.writer.templates.get(check_id(request.id))
    stored = engine.delivering.commands.looked_at.get(request.id, stored, now)
    if stored is None or stored.packed.kind is not Kind.CA:
        return pb.CommandedAnswer()
    if engine.judge is not None and caller is not None:
        engine.judge.check_commanded(stored.packed, caller)
    shown = stored.packed._replace(reader="")
    answer = pb.CommandedAnswer(
        known=True,
        command=templates_to_wire([shown]),
        left_us=max(0, stored.expires_us - now),
    )
    search = Search(stored.utuple, 0, engine.delivering.cursors.committed, now)
    async with aclosing(engine.store.search(search)) as found:
        async for batch in found:
            for row, formal in enumerate(batch.columns.each_id()):
                if len(answer.devices) == MOST:
                    answer.more = True
                    return answer
                address = batch.columns.addresses[row]
                handed = _handed(engine, formal, stored)
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


def _handed(engine: Engine, formal: bytes, stored: StoredTemplate) -> pb.Handed.ValueType:
    delivering, command = engine.delivering, stored.packed.id
    devices, handover = delivering.devices, delivering.commands.handovers.get(command)
    if delivering.commands.has_acknowledged(formal, stored):
        return pb.ACKNOWLEDGED
    if devices.has(formal, command) or (handover is not None and formal in handover.have_it):
        return pb.HANDED_OVER
    return pb.NOT_CONNECTED if devices.get(formal) is None else pb.NOT_CONFIRMED
