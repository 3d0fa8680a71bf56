"""Looking at the cluster again and again, until something is so or a limit comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from utuple.admin.snapshot import Snapshot, snapshot_of
from utuple.errors import Unavailable
from utuple.runtime.clock import monotonic_s

LOOK_S = 0.5
"""A person watches."""


async def looks(
    addresses: Sequence[str], limit_s: float, every_s: float = LOOK_S
) -> AsyncIterator[Snapshot]:
    """The cluster as it is now, and again, until the limit. Managers that do not answer are waited for:
    what was begun goes on without them."""
    deadline_s = monotonic_s() + limit_s
    while True:
        try:
            yield await snapshot_of(addresses)
        except Unavailable:
            if monotonic_s() >= deadline_s:
                raise
        if monotonic_s() >= deadline_s:
            return
        await asyncio.sleep(every_s)
