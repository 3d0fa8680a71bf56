"""uvicorn, told what our programs are told: when to stop. Connections have limits of their own."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

import utuple
from utuple.doors.http.config import Limits
from utuple.doors.http.guarding import CERTIFICATE
from utuple.doors.http.streaming import ABORT
from utuple.doors.tls import Listening, shown_by
from utuple.runtime.logs import Log

_log = Log("utuple.doors.http.listening")
_BACKLOG = 2_048


class Connection(HttpToolsProtocol):
    """One that says nothing is closed, and so is one too many."""

    limits = Limits()
    open = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._certificate = shown_by(transport.get_extra_info("ssl_object"))
        Connection.open += 1
        if Connection.open > self.limits.connections:
            transport.abort()
            return
        self._patience = self.loop.call_later(self.limits.request_s, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        Connection.open -= 1
        if hasattr(self, "_patience"):
            self._patience.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope: Any = self.scope
        scope[ABORT] = self.transport.abort
        scope[CERTIFICATE] = self._certificate

    def _look(self) -> None:
        """Has the head of a request come?"""
        began = getattr(self, "cycle", None) is not None
        if not began and not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """Signals are the program's."""

    def capture_signals(self) -> Any:
        from contextlib import nullcontext

        return nullcontext()


def bound(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(_BACKLOG)  # from here on clients are not refused
    except OSError as error:
        made.close()
        raise utuple.Unavailable(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return made


def server_of(app: Any, limits: Limits, tls: Listening | None = None) -> Server:
    Connection.limits = limits
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        loop="none",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        ssl_context_factory=None if tls is None else lambda *_: tls.context,
        timeout_keep_alive=int(limits.keep_alive_s),
        timeout_graceful_shutdown=int(limits.stop_s),
    )
    return Server(config)


async def serve_until(stop: asyncio.Event, server: Server, sock: socket.socket) -> None:
    serving = asyncio.create_task(server.serve([sock]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
