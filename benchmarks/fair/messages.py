"""Batches as they travel: small enough to be many, and the same every time but for their ids."""

from __future__ import annotations

import os

from benchmarks import trucks
from utuple.model.identity import uuid7
from utuple.runtime.clock import now_us
from utuple.wire import utuple_pb2 as pb

_LIFETIME_US = 60_000_000
_PAYLOAD = b'{"kg":1200}'


def _ids(count: int, at_us: int) -> bytes:
    return b"".join(uuid7(at_us, int.from_bytes(os.urandom(9)) >> 1) for _ in range(count))


def registration(count: int, epoch: int, number: int = 0) -> pb.RegisterRequest:
    at_us = now_us()
    columns = pb.Columns(
        families=[pb.Family(subject=trucks.SUBJECT, type=trucks.TYPE, epoch=epoch)],
        ids=_ids(count, at_us),
        times_us=at_us.to_bytes(8, "little") * count,
        lifetimes_us=_LIFETIME_US.to_bytes(8, "little") * count,
        addresses=[f"greedy-{row}" for row in range(count)],
        payloads=[_PAYLOAD] * count,
    )
    return pb.RegisterRequest(events=columns, number=number)


def commands(count: int) -> pb.SimpleCommands:
    """To devices that nobody serves: each is matched, and answered at once."""
    return pb.SimpleCommands(
        families=[pb.Family(subject=trucks.SUBJECT, type=trucks.TYPE)],
        ids=_ids(count, now_us()),
        addresses=[f"nobody-{row}" for row in range(count)],
        payloads=[_PAYLOAD] * count,
    )
