"""TLS between a socket and its connection, either end. `ssl` does the work; bytes pass through its buffers in memory.

asyncio has the same, and leaves two things out that are needed here: whoever is refused in a handshake is told why (the
alert is sent before the socket is closed: "certificate expired"), and the connection knows of the socket from the moment it was
accepted, so that it counts among the server's connections and its time is limited before the handshake is over.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Any, cast

from utuple.transport.http2.connection import Connection
from utuple.transport.http2.frames import Piece

_RECORD_BYTES = 16 << 10
"""The most that TLS puts into one record, and that one read brings."""


class TlsTransport:
    """What a connection asks of its transport, over one that is not secure by itself."""

    def __init__(
        self, below: asyncio.Transport, tls: ssl.SSLObject, outgoing: ssl.MemoryBIO
    ) -> None:
        self._below = below
        self._tls = tls
        self._outgoing = outgoing
        self.set_write_buffer_limits = below.set_write_buffer_limits
        self.is_closing = below.is_closing
        self.abort = below.abort
        self.pause_reading = below.pause_reading
        self.resume_reading = below.resume_reading
        self.get_write_buffer_size = below.get_write_buffer_size

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._tls
        return self._below.get_extra_info(name, default)

    def write(self, data: Piece) -> None:
        try:
            done = self._tls.write(data)
            while done < len(data):
                done += self._tls.write(memoryview(data)[done:])
        except ssl.SSLError:  # it is broken, which whoever reads hears
            self._below.abort()
        else:
            self.flush()

    def flush(self) -> None:
        if self._outgoing.pending and not self._below.is_closing():
            self._below.write(self._outgoing.read())

    def close(self) -> None:
        """With a goodbye, so that the peer knows that nothing was cut off."""
        with suppress(ssl.SSLError):  # it would wait for the peer's goodbye, which nobody here does
            self._tls.unwrap()
        self.flush()
        self._below.close()


class Handshake(asyncio.Protocol):
    """The protocol of the socket: a handshake, then whatever its connection is."""

    def __init__(
        self, context: ssl.SSLContext, connection: Connection, server_name: str | None = None
    ) -> None:
        """Without the name of a server, this end is the server."""
        self._context = context
        self._connection = connection
        self._server_name = server_name
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject
        self._transport: TlsTransport | None = None
        self._is_secure = False

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        below = cast(asyncio.Transport, transport)
        is_server, context = self._server_name is None, self._context
        if is_server:
            context.num_tickets = 0  # who resumed a session would not show its certificate again
        self._tls = context.wrap_bio(self._incoming, self._outgoing, is_server, self._server_name)
        self._transport = TlsTransport(below, self._tls, self._outgoing)
        self._shake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        self._incoming.write(data)
        if self._is_secure:
            self._read()
        else:
            self._shake()

    def eof_received(self) -> None:
        """The socket is closed for it."""

    def _shake(self) -> None:
        assert self._transport is not None
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._transport.flush()
            return
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._is_secure = True
        self._transport.flush()
        self._connection.connection_made(cast(asyncio.Transport, self._transport))
        self._read()

    def _read(self) -> None:
        """Everything that is there, in one piece."""
        assert self._transport is not None
        pieces: list[bytes] = []
        failure: Exception | None = None
        try:
            while piece := self._tls.read(_RECORD_BYTES):
                pieces.append(piece)
            failure = ConnectionError("the connection was closed")  # the peer said goodbye
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            failure = error
        if pieces:
            self._connection.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if failure is not None:
            self._fail(failure)
        else:
            self._transport.flush()

    def _fail(self, error: Exception) -> None:
        """The peer is told why in an alert, if OpenSSL has written one."""
        self._connection.connection_lost(error)
        if self._transport is not None:
            self._transport.close()
