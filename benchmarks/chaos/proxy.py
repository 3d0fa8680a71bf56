"""A TCP proxy that cuts, stalls and slows on purpose. It stands between a program and all who talk to it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from benchmarks.chaos.schedule import Way

CHUNK_BYTES = 64 << 10
CONNECT_S = 2.0


class Proxy:
    """Listens on `port` and carries to `target_port`, both on `host`."""

    def __init__(self, host: str, port: int, target_port: int) -> None:
        self._host = host
        self.port = port
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._delay_s = 0.0
        self._to, self._from = asyncio.Event(), asyncio.Event()
        self._to.set()
        self._from.set()

    @property
    def address(self) -> str:
        return f"{self._host}:{self.port}"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._carry, self._host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self.cut()
        for pipe in list(self._pipes):
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    # --- what a fault does ---------------------------------------------------------------------

    def cut(self) -> None:
        """Nothing listens any more, and what was open is reset."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.reset()

    def reset(self) -> None:
        for end in list(self._ends):
            end.transport.abort()

    def stall(self, way: Way) -> None:
        if way in (Way.BOTH, Way.TO):
            self._to.clear()
        if way in (Way.BOTH, Way.FROM):
            self._from.clear()

    def slow(self, delay_s: float) -> None:
        """Every piece that is carried takes this long, each way."""
        self._delay_s = delay_s

    async def mend(self) -> None:
        """What was held back goes on its way."""
        self._delay_s = 0.0
        self._to.set()
        self._from.set()
        if self._server is None:
            await self.open()

    # --- carrying ------------------------------------------------------------------------------

    async def _carry(self, near_in: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pipes.add(task)
        self._ends.add(near)
        far: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(CONNECT_S):
                far_in, far = await asyncio.open_connection(self._host, self._target_port)
            self._ends.add(far)
            await self._both_ways(near_in, near, far_in, far)
        except (OSError, TimeoutError, asyncio.CancelledError):
            near.transport.abort()  # the target is down, or we are closing
        finally:
            for end in (near, far):
                if end is not None:
                    self._ends.discard(end)
                    end.close()  # what is on its way still goes out, unless it was reset
            self._pipes.discard(task)

    async def _both_ways(
        self,
        near_in: asyncio.StreamReader,
        near: asyncio.StreamWriter,
        far_in: asyncio.StreamReader,
        far: asyncio.StreamWriter,
    ) -> None:
        """Until one side ends or breaks: gRPC never closes one way only."""
        ways = [
            asyncio.create_task(self._pump(near_in, far, self._to)),
            asyncio.create_task(self._pump(far_in, near, self._from)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while piece := await source.read(CHUNK_BYTES):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await gate.wait()
                sink.write(piece)
                await sink.drain()
