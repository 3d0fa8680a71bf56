"""How every program runs: an event loop, an ordered stop on SIGTERM or SIGINT, errors as one line."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from utuple.errors import UTupleError
from utuple.runtime.log_file import LogFile
from utuple.runtime.logs import Log, log_to_stderr

_log = Log("utuple.runtime.program")


def run_program(
    name: str, main: Callable[[asyncio.Event], Coroutine[Any, Any, None]], log: str = ""
) -> int:
    """Run `main(stop)` until it returns; `stop` is set when the program is asked to end. The exit code
    is 0 after an ordered stop, 1 after an error a person can mend. `log`: a file, or empty for standard error."""
    try:
        file = LogFile(Path(log)) if log else None
        if file is not None:
            file.take_output()
        log_to_stderr(name, file)
    except OSError as error:
        log_to_stderr(name)
        _log.error("stopped", reason=f"--log {log}: {error.strerror}")
        return 1
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_until_stopped(main))
    except UTupleError as error:
        _log.error("stopped", reason=error)
        return 1
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _until_stopped(main: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, stop.set)
    await main(stop)
