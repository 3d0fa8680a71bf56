"""How long coroutines take together, and what they cost this process."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Coroutine, Iterable

from benchmarks.child import Answer
from utuple.runtime.clock import monotonic_s


async def timed(work: Iterable[Coroutine[object, object, None]]) -> Answer:
    """What was made ready before is not looked through for garbage meanwhile."""
    gc.collect()
    gc.freeze()
    began_s, began_cpu_s = monotonic_s(), time.process_time()
    await asyncio.gather(*work)
    return {"took_s": monotonic_s() - began_s, "cpu_s": time.process_time() - began_cpu_s}
