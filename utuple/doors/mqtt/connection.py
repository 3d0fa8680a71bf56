"""One connection: bytes in, packets to its client; packets out, bytes to the socket.

Packets of one turn of the event loop leave with one write. While the socket takes no more, deliveries wait (`writable`);
while the client has too much under way, nothing more is read from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from utuple.doors.mqtt.codec.packets import (
    V5,
    V311,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Property,
)
from utuple.doors.mqtt.codec.reading import frame, read
from utuple.doors.mqtt.codec.reasons import CONNACK_311, ProtocolError, Reason
from utuple.doors.mqtt.codec.writing import write
from utuple.doors.tls import shown_by
from utuple.runtime.logs import Log

if TYPE_CHECKING:
    from utuple.doors.mqtt.client import Client
    from utuple.doors.mqtt.door import Door

_log = Log("utuple.doors.mqtt.connection")
_SAID_CHARS = 300


class Pipe(Protocol):
    """What a connection needs of a transport: a socket's, or a WebSocket's."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, door: Door) -> None:
        self._door = door
        self._pipe: Pipe | None = None
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._version = V311
        self._held = False
        self._is_admitted = False
        self._loop = asyncio.get_running_loop()
        self.peer = ""
        self.certificate: bytes | None = None
        """That was shown in the handshake, as DER."""
        self._when_lost: list[Callable[[], None]] | None = []
        """None: it is lost."""
        self.client: Client | None = None
        self.is_closed = False
        self.is_writable = True
        self._limit: asyncio.TimerHandle | None = None

    # --- asyncio.Protocol -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only
        limits = self._door.limits
        transport.set_write_buffer_limits(high=limits.write_buffer_bytes)
        peer = transport.get_extra_info("peername") or ("?",)
        shown = shown_by(transport.get_extra_info("ssl_object"))
        self.begin(transport, ":".join(map(str, peer[:2])), shown)

    def begin(self, pipe: Pipe, peer: str, certificate: bytes | None = None) -> None:
        self._pipe, self.peer, self.certificate = pipe, peer, certificate
        self._limit = self._loop.call_later(self._door.limits.connect_s, self._too_late)
        self._is_admitted = self._door.admits(self)

    def data_received(self, data: bytes) -> None:
        if self.is_closed:  # a WebSocket may go on until it is aborted
            return
        self._buffer += data
        self._read()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        self._buffer.clear()
        self._end_limit()
        self._door.left(self)
        if self.client is not None:
            self.client.lost(self)
        telling, self._when_lost = self._when_lost or [], None
        for tell in telling:
            tell()

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Once; at once if it is lost already."""
        if self._when_lost is None:
            tell()
        else:
            self._when_lost.append(tell)

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        if self.client is not None:
            self.client.make_room()

    # --- packets --------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            if self.client is None and not (self._held or self.is_closed):
                self._read_connect()
            while self.client is not None and not (self._held or self.is_closed):
                if not self._read_packets(self.client):
                    break
        except ProtocolError as error:
            self.refuse(error.reason, str(error))

    def _read_connect(self) -> None:
        buffer = self._buffer
        if buffer and buffer[0] >> 4 != 1:
            raise ProtocolError(Reason.PROTOCOL_ERROR, "the first packet is no CONNECT")
        found = frame(buffer, 0, self._door.limits.packet_bytes)
        if found is None or found[1] > len(buffer):
            return
        first, body = buffer[0], bytes(buffer[found[0] : found[1]])
        del buffer[: found[1]]
        level = 2 + int.from_bytes(body[:2], "big")  # behind the protocol's name
        self._version = V5 if body[level : level + 1] >= bytes((V5,)) else V311  # to be refused in
        connect = read(first, body, V5)
        assert isinstance(connect, Connect)
        self._version = connect.version
        if not self._is_admitted:  # said now, in its version
            raise ProtocolError(Reason.SERVER_BUSY, "too many connections")
        self._end_limit()  # what takes time now is for the space to say
        self.hold()
        self._door.greet(self, connect)

    def _read_packets(self, client: Client) -> bool:
        """What has come together is given to the client together, also what came before a packet that is wrong. Whether there
        may be more."""
        buffer, at, most = self._buffer, 0, client.session.takes
        packets: list[Packet] = []
        try:
            while len(packets) < most:
                found = frame(buffer, at, self._door.limits.packet_bytes)
                if found is None or found[1] > len(buffer):
                    break
                body = bytes(buffer[found[0] : found[1]])
                packets.append(read(buffer[at], body, self._version))
                at = found[1]
        finally:
            del buffer[:at]
            if packets:
                client.received(packets)
        return len(packets) == most

    def accept(self, client: Client) -> None:
        """The CONNACK is on its way: from now on packets are the client's."""
        self.client = client

    def _end_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def hold(self) -> None:
        """Read no more for now."""
        if not self._held:
            self._held = True
            if self._pipe is not None:
                self._pipe.pause_reading()

    def go_on(self) -> None:
        if self._held and not self.is_closed:
            self._held = False
            if self._pipe is not None:
                self._pipe.resume_reading()
            self._read()

    def send(self, packet: Packet) -> None:
        if self.is_closed:
            return
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(write(packet, self._version))

    def _flush(self) -> None:
        out, self._out = self._out, []
        if out and self._pipe is not None and not self.is_closed:
            self._pipe.write(b"".join(out))

    # --- the end --------------------------------------------------------------------------------

    def refuse(self, reason: Reason, said: str, *, is_told: bool = False) -> None:
        """The client broke a rule, or may not come in. `is_told`: in words too, where its version can hear them."""
        _log.info("connection refused", peer=self.peer, reason=reason.name, said=said)
        if self.client is not None:
            self.client.broken(reason)
            return
        if self._version == V5 or reason in CONNACK_311:
            words = {Property.REASON_STRING: said[:_SAID_CHARS]} if is_told else {}
            self.send(Connack(reason, properties=words))
        self.close()

    def close(self, reason: Reason | None = None) -> None:
        """`reason`: said to the client, if its version can hear it."""
        if self.is_closed:
            return
        if reason is not None and self._version == V5:
            self.send(Disconnect(reason))
        self._flush()
        self.is_closed = True
        if self._pipe is not None:
            self._pipe.close()
            # A peer that reads nothing would keep its socket open for as long as it likes.
            self._loop.call_later(self._door.limits.connect_s, self._pipe.abort)

    def _too_late(self) -> None:
        self.refuse(Reason.SERVER_BUSY, "no CONNECT in time")
