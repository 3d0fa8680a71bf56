"""Work that takes long is done by a thread, beside the event loop. It must be pure: nothing it is given changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Given = TypeVarTuple("Given")


async def aside(work: Callable[[*Given], T], *given: *Given) -> T:
    """While it works Python's lock changes hands every few milliseconds, so that the loop goes on."""
    return await asyncio.get_running_loop().run_in_executor(None, work, *given)
