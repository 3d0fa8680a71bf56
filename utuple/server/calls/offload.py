"""Requests that are large are decoded and checked by a thread, beside the event loop."""

from __future__ import annotations

from utuple.model.utuple import ID_BYTES, UTuple
from utuple.runtime.aside import aside
from utuple.server.calls.intake import one_command, read_from_wire
from utuple.server.writing.request import Request
from utuple.wire import utuple_pb2 as pb

_LARGE_BYTES = 64 << 10
_LARGE_ROW_BYTES = 256
"""A request of so many bytes, whose rows are so large on average, is checked by a thread: a megabyte of JSON takes tens
of milliseconds. Rows that are small are checked sooner than a thread begins."""


def is_large(request: pb.RegisterRequest, size: int) -> bool:
    if size <= _LARGE_BYTES:
        return False
    rows = len(request.events.ids) + len(request.devices.ids) + len(request.templates.ids)
    return size * ID_BYTES > _LARGE_ROW_BYTES * rows


async def asked_to_read(message: pb.Templates) -> tuple[UTuple, int]:
    if message.ByteSize() > _LARGE_BYTES:
        return await aside(read_from_wire, message)
    return read_from_wire(message)


async def asked_to_command(request: pb.CommandRequest) -> Request:
    if request.ByteSize() > _LARGE_BYTES:
        return await aside(one_command, request.command, request.retry)
    return one_command(request.command, request.retry)
