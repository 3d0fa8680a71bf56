"""Waiting in scenes: until it is so, and a little longer.

Virtual seconds are not free: every program beats on in them. So a scene waits for its longest time only if something is
missing, which is a finding."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_LOOK_S = 0.25
_AFTER_S = 3.0
"""What comes twice would come by then, too."""


async def until(is_so: Callable[[], bool], most_s: float, after_s: float = _AFTER_S) -> None:
    """Or so much time has passed; whoever asked looks for himself what is missing."""
    for _ in range(round(most_s / _LOOK_S)):
        if is_so():
            await asyncio.sleep(after_s)
            return
        await asyncio.sleep(_LOOK_S)
