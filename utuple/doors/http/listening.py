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
from utuple.doors.http.problems import encoded
from utuple.doors.http.streaming import ABORT
from utuple.doors.tls import Listening, shown_by
from utuple.runtime.logs import Log

_log = Log("utuple.doors.http.listening")
_BACKLOG = 2_048


class Connection(HttpToolsProtocol):
    """One that says nothing is closed, and so is one too many. The head of a request, the first one or any after it, must come
    within a time and a size: the parser itself would wait, and collect, for ever."""

    limits = Limits()
    open = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._certificate = shown_by(transport.get_extra_info("ssl_object"))
        self._patience: asyncio.TimerHandle | None = None
        self._head_bytes: int | None = None
        """Of a head that is not whole."""
        self._arrived = 0
        """Bytes of the piece that is being read."""
        Connection.open += 1
        if Connection.open > self.limits.connections:
            transport.abort()
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        Connection.open -= 1
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._arrived = len(data)
        super().data_received(data)
        if self._head_bytes is None:
            return
        self._head_bytes += len(data)
        if self._head_bytes > self.limits.head_bytes and not self.transport.is_closing():
            self._too_much()

    def send_400_response(self, msg: str) -> None:
        """The parser has given up: an unknown method, a head or a chunk that is none, an address that is too long for it."""
        in_head = self._head_bytes is not None
        if in_head and (self._head_bytes or 0) + self._arrived > self.limits.head_bytes:
            self._too_much()
        else:
            said = "this is not HTTP/1.1 as it is understood here: its method, head or chunks"
            self._refuse(b"400 Bad Request", said, in_head=in_head)

    def _too_much(self) -> None:
        most = f"the head of a request has at most {self.limits.head_bytes} bytes"
        self._refuse(b"431 Request Header Fields Too Large", most)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        self._expect_head()
        scope: Any = self.scope
        scope[ABORT] = self.transport.abort
        scope[CERTIFICATE] = self._certificate

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.limits.head_bytes:
            raise ValueError(
                "the head is too large"
            )  # the parser ends, and send_400_response says it
        super().on_headers_complete()
        self._stop_waiting()

    def _expect_head(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self.loop.call_later(self.limits.request_s, self._too_slow)

    def _stop_waiting(self) -> None:
        self._head_bytes = None
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _too_slow(self) -> None:
        if self.transport.is_closing():
            return
        if self._head_bytes is None:  # not a word
            self.transport.close()
            return
        said = f"the head of a request must come within {self.limits.request_s:g} s"
        self._refuse(b"408 Request Timeout", said)

    def _refuse(self, status: bytes, said: str, *, in_head: bool = True) -> None:
        """Unless an answer is under way, in the middle of which nothing else may be said. A head is that of the next request, so it
        waits for the answer of the one before; what is wrong in a body is said instead of the answer, if that has not begun."""
        cycle = getattr(self, "cycle", None)
        if (
            cycle is None
            or cycle.response_complete
            or not (in_head or self.pipeline or cycle.response_started)
        ):
            title = status[4:].decode()
            body = encoded(
                {"type": "about:blank", "status": int(status[:3]), "title": title, "detail": said}
            )
            head = b"HTTP/1.1 %b\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            self.transport.write(head % (status, len(body)) + body)
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
