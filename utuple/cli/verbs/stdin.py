"""Lines of standard input as they come: whatever has arrived is one batch, so a file goes fast and
`tail -f` is not kept waiting."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator

_BLOCK_BYTES = 1 << 20
_LONGEST_LINE_BYTES = 16 << 20
"""Payloads are limited to 1 MiB; a line without an end must not eat the memory."""
_BLOCKS_AHEAD = 4


async def batches_of_lines() -> AsyncIterator[list[bytes]]:
    """Until the end of standard input. The last line may lack its end."""
    rest = b""
    async for block in _blocks(sys.stdin.fileno()):
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > _LONGEST_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _blocks(descriptor: int) -> AsyncIterator[bytes]:
    """Read in a thread of its own, which dies with the program: nothing else ends a read from a
    terminal, and asyncio's own threads would be waited for."""
    loop = asyncio.get_running_loop()
    blocks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_BLOCKS_AHEAD)

    def read() -> None:
        block = b"begun"
        while block:
            room.acquire()
            try:
                block = os.read(descriptor, _BLOCK_BYTES)
            except OSError:
                block = b""
            if loop.is_closed():
                return
            loop.call_soon_threadsafe(blocks.put_nowait, block)

    threading.Thread(target=read, daemon=True, name="stdin").start()
    while block := await blocks.get():
        room.release()
        yield block
