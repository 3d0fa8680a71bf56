"""A connection that came in: whether it is let in, its first words, and the calls that begin on it."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from utuple.transport.arrivals import Arrivals
from utuple.transport.http2.connection import Connection
from utuple.transport.http2.frames import PREFACE, ErrorCode, ProtocolError, goaway
from utuple.transport.http2.headers import Block, Header, fields_problem, request_problem
from utuple.transport.http2.limits import BROKEN, FAILED, MOST_WINDOW, Limits
from utuple.transport.http2.stream import Stream
from utuple.transport.http2.turns import Turns
from utuple.transport.messages import TooLarge
from utuple.transport.peer import Peer, Tls, peer_of
from utuple.transport.tls import Handshake

_log = logging.getLogger("utuple.transport")


class Host(Protocol):
    """What a connection asks of its server."""

    limits: Limits
    arrivals: Arrivals[ServerConnection]
    connections: set[ServerConnection]
    held_bytes: int

    @property
    def turns(self) -> Turns: ...

    def begin(
        self,
        connection: ServerConnection,
        number: int,
        block: Block,
        *,
        ends: bool,
    ) -> None: ...


class Entrance(asyncio.Protocol):
    """Of every socket that is accepted: whom we do not let in costs no more than this."""

    def __init__(self, server: Host, tls: Tls | None) -> None:
        self._server = server
        self._tls = tls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        socket = cast(asyncio.Transport, transport)
        peer = peer_of(socket)
        now_s = asyncio.get_running_loop().time()
        if why := self._server.arrivals.refusal(peer.host, now_s):
            socket.abort()
            if count := self._server.arrivals.turned_away(now_s):
                _log.warning("connections not let in count=%d reason=%r", count, why)
            return
        connection = ServerConnection(
            self._server, None if self._tls is None else self._tls.refused
        )
        connection.arrived(socket, peer)
        protocol: asyncio.Protocol = connection
        if self._tls is not None:
            protocol = Handshake(self._tls.context(), connection)
        socket.set_protocol(protocol)
        protocol.connection_made(socket)


class ServerConnection(Connection):
    def __init__(self, server: Host, refused: Callable[[str, str], None] | None = None) -> None:
        """`refused` hears of a handshake that failed."""
        super().__init__(server.limits, request_problem, server.turns)
        self._server = server
        self._refused = refused
        self._greeted = b""
        self._is_greeted = False
        self._last = 0
        self._hurry: asyncio.TimerHandle | None = None
        self._last_at_tick = 0
        self._idle_since_s = self.loop.time()
        self._is_said_goodbye = False
        self._is_left = False
        """The client makes no more calls."""
        self.is_leaving = False

    # --- how it begins and ends ------------------------------------------------------------------

    def arrived(self, transport: asyncio.Transport, peer: Peer) -> None:
        super().arrived(transport, peer)
        self._hurry = self.loop.call_later(self.limits.handshake_s, self._too_slow)
        oldest = self._server.arrivals.enter(self, peer.host)
        if oldest is not None:
            oldest.abort("others wait to be heard")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.is_open:
            self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError) and not self._is_greeted:
            self._blame(FAILED)
            if self._refused is not None:
                self._refused(self.peer.host, _why(exc))
        super().connection_lost(exc)

    def _too_slow(self) -> None:
        self._blame(FAILED)
        self.abort(f"no HTTP/2 came within {self.limits.handshake_s:g} s")

    def _blame(self, points: int) -> None:
        self._server.arrivals.blame(self.peer.host, points, self.loop.time())

    def close(self, code: ErrorCode = ErrorCode.NO_ERROR, reason: str = "") -> None:
        if code is not ErrorCode.NO_ERROR and self.is_open:
            self._blame(BROKEN)
            said = {"peer": self.peer.address, "code": code.name, "reason": reason}
            _log.info("connection refused", extra=said)
        super().close(code, reason)

    def lost(self, reason: str) -> None:
        self._stop_hurrying()
        self._server.connections.discard(self)
        self._server.arrivals.leave(self)

    def _stop_hurrying(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None

    def leave(self) -> None:
        """No more calls."""
        self.is_leaving = True
        self.write(goaway(self._last, ErrorCode.NO_ERROR))

    def tick(self, now_s: float) -> None:
        if self.streams or self._last != self._last_at_tick:
            self._last_at_tick, self._idle_since_s = self._last, now_s
        elif now_s - self._idle_since_s > self.limits.idle_s:
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        """A call that is on its way is still taken: the connection is closed at the next tick without one."""
        if self._is_said_goodbye:
            self.close(ErrorCode.NO_ERROR, "idle")
        else:
            self._is_said_goodbye = True
            self.write(goaway(MOST_WINDOW, ErrorCode.NO_ERROR, "idle"))

    # --- what comes ------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if not self._is_greeted:
            self._greeted += data
            if not self._greeted.startswith(PREFACE[: len(self._greeted)]):
                self._blame(FAILED)
                self.abort("not HTTP/2")
                return
            if len(self._greeted) < len(PREFACE):
                return
            self._is_greeted = True
            data, self._greeted = self._greeted[len(PREFACE) :], b""
        super().data_received(data)

    def peer_is_ready(self) -> None:
        if self._hurry is not None:
            self._stop_hurrying()
            self._server.arrivals.greeted(self)

    def peer_leaves(self, last_stream: int, reason: str) -> None:
        self._is_left = True
        if not self.streams:
            self.close()

    def forget(self, stream: Stream) -> None:
        super().forget(stream)
        if self._is_left and not self.streams:
            self.close()

    def is_idle(self, number: int) -> bool:
        return not number % 2 or number > self._last

    def holds(self, stream: Stream, more: int) -> None:
        self._server.held_bytes += more
        super().holds(stream, more)
        if more > 0 and self._server.held_bytes > self.limits.held_bytes:
            raise TooLarge(f"more than {self.limits.held_bytes} bytes wait at this server")

    def headers_came(self, number: int, block: bytes, *, ends: bool) -> None:
        read = self.header_reader.read(block)
        stream = self.streams.get(number)
        if stream is not None:
            self._trailers_came(stream, read.headers, ends=ends)
            return
        if not number % 2:
            raise ProtocolError("a client's streams have odd numbers")
        if number <= self._last:
            self._on_late(number, "HEADERS")
            return
        self._last = number
        if read.problem or (ends and read.declared_bytes):
            what = read.problem or "no DATA, where some was declared"
            self.fail_stream(number, ErrorCode.PROTOCOL_ERROR, what)
        elif self.is_leaving or len(self.streams) >= self.limits.streams_per_connection:
            self.fail_stream(number, ErrorCode.REFUSED_STREAM, "too many calls at a time")
        else:
            self._server.begin(self, number, read, ends=ends)

    def _trailers_came(self, stream: Stream, headers: Sequence[Header], *, ends: bool) -> None:
        """Nobody asks for them."""
        if stream.was_ended or (stream.has_ended and not stream.is_closed):
            self.fail_stream(stream.number, ErrorCode.STREAM_CLOSED, "HEADERS after the end")
        elif not ends or fields_problem(headers):
            what = "headers in the middle of a request, or wrong ones at its end"
            self.fail_stream(stream.number, ErrorCode.PROTOCOL_ERROR, what)
        else:
            self._on_end(stream)


def _why(error: ssl.SSLError) -> str:
    """In OpenSSL's words, which are the same for the same cause."""
    said = getattr(error, "verify_message", "") or error.reason or type(error).__name__
    return str(said)
