"""What a stream would write, for tests that have no stream."""

from __future__ import annotations

import asyncio

from utuple.server.delivering.outbox import Outbox, Outgoing


async def next_in(outbox: Outbox) -> Outgoing:
    """The next, when there is one."""
    while (item := outbox.pop()) is None:  # noqa: ASYNC110  turns of the loop, not time
        await asyncio.sleep(0)
    return item
