"""A real server on a thread of this process, over a real PostgreSQL, whose event loop measures its own turns.

What is measured is the processor time of the server's own thread: on a busy machine a turn comes late, but it does
not take longer.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.system.cluster import free_port
from utuple.server.__main__ import serve
from utuple.server.config import ServerConfig


class MeasuringLoop(asyncio.SelectorEventLoop):
    """Knows the longest turn since it was last asked."""

    _longest_s = 0.0

    def _run_once(self) -> None:
        began_s = time.thread_time()
        super()._run_once()  # type: ignore[misc]
        self._longest_s = max(self._longest_s, time.thread_time() - began_s)

    def longest_s(self) -> float:
        longest_s, self._longest_s = self._longest_s, 0.0
        return longest_s


@contextmanager
def measured_server(database: str) -> Iterator[tuple[str, MeasuringLoop]]:
    """Its address and its loop."""
    loop, stop = MeasuringLoop(), asyncio.Event()
    address = f"127.0.0.1:{free_port()}"
    config = ServerConfig("server-1", address, database, ("127.0.0.1:1",), create=True)

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve(config, stop))

    thread = threading.Thread(target=run, name="server")
    gc.disable()  # what this process has gathered is none of the server's
    thread.start()
    try:
        yield address, loop
    finally:
        with suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        gc.enable()
