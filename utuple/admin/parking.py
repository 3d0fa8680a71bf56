"""A reader's parked deliveries, over all servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from utuple.admin import transport
from utuple.admin.snapshot import snapshot_of
from utuple.wire import utuple_pb2 as pb

Action = Literal["list", "release", "drop"]


async def parked_events(
    at: Sequence[str], reader: str, action: Action, ids: Sequence[bytes] = ()
) -> list[pb.ParkedEvent] | None:
    """Those that the action was for, in the order they were parked; None: no server knows such a reader."""
    asked = pb.ParkedRequest(
        reader=reader, action=pb.ParkedRequest.Action.Value(action.upper()), ids=b"".join(ids)
    )
    servers = (await snapshot_of(list(at), brief=True)).servers
    answers = [await transport.parked(one.address, asked) for one in servers]
    if not any(answer.known for answer in answers):
        return None
    return sorted((e for one in answers for e in one.events), key=lambda event: event.parked_us)
