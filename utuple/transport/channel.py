"""A client's channel: one connection, made when it is needed, behind the interface of `grpc.aio.Channel`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import grpc

from utuple.transport.calls import (
    Call,
    Deserialize,
    Method,
    Serialize,
)
from utuple.transport.http2.headers import Metadata
from utuple.transport.http2.limits import CLIENT, Limits
from utuple.transport.outbound import ClientConnection, ClientStream
from utuple.transport.peer import Tls
from utuple.transport.tls import Handshake

FIRST_BACKOFF_S = 0.1
MOST_BACKOFF_S = 1.0
CONNECT_LIMIT_S = 5.0
"""Until the other end has said its settings: one that listens and does not answer is not there."""

NEVER_CONNECTED = "failed to connect to all addresses"
"""In what grpc says of a call that was never sent, and so in what is said here."""

Connectivity = grpc.ChannelConnectivity


class Channel(grpc.aio.Channel):
    def __init__(
        self,
        address: str,
        max_message_bytes: int,
        tls: Tls | None = None,
        limits: Limits = CLIENT,
        metadata: Metadata = (),
    ) -> None:
        """`metadata` goes with every call."""
        self._address = address
        self._metadata = metadata
        self._tls = tls
        self._limits = limits
        self._max_message_bytes = max_message_bytes
        self._connection: ClientConnection | None = None
        self._state = Connectivity.IDLE
        self._change: asyncio.Future[None] | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._backoff_s = FIRST_BACKOFF_S
        self._failure = ""
        self.is_unknown_host = False
        """The last attempt to connect found nobody by this name."""
        self.is_silent = False
        """The last attempt to connect was not answered, neither by a refusal."""
        self._later: asyncio.TimerHandle | None = None

    @property
    def failure(self) -> str:
        """Why the last attempt to connect failed."""
        return self._failure

    # --- its connection --------------------------------------------------------------------------

    @property
    def connection_if_ready(self) -> ClientConnection | None:
        return self._connection if self._state is Connectivity.READY else None

    async def connected(self, *, wait: bool) -> ClientConnection:
        """Raises ConnectionError if that fails; with `wait` it tries again and again."""
        while True:
            state = self.get_state(try_to_connect=True)
            if state is Connectivity.READY:
                assert self._connection is not None
                return self._connection
            if state is Connectivity.SHUTDOWN:
                raise ConnectionError("the channel is closed")
            if state is Connectivity.TRANSIENT_FAILURE and not wait:
                raise ConnectionError(f"{NEVER_CONNECTED}: {self._address}: {self._failure}")
            await self.wait_for_state_change(state)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        if try_to_connect and self._state is Connectivity.IDLE:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
            self._enter(Connectivity.CONNECTING)
        return self._state

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        while self._state is last_observed_state:
            if self._change is None:
                self._change = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._change)

    async def channel_ready(self) -> None:
        await self.connected(wait=True)

    def _enter(self, state: grpc.ChannelConnectivity) -> None:
        self._state = state
        change, self._change = self._change, None
        if change is not None and not change.done():
            change.set_result(None)

    async def _connect(self) -> None:
        host, _, port = self._address.rpartition(":")
        loop = asyncio.get_running_loop()

        check = None if self._tls is None else self._tls.check
        connection = ClientConnection(
            self._address, self._max_message_bytes, self._changed, check, self._limits
        )
        self._connection = connection

        def protocol() -> asyncio.Protocol:
            if self._tls is None:
                return connection
            return Handshake(self._tls.context(), connection, host.strip("[]"))

        is_made = False
        try:
            async with asyncio.timeout(CONNECT_LIMIT_S):
                await loop.create_connection(protocol, host.strip("[]"), int(port))
                is_made = True
                await self.wait_for_state_change(Connectivity.CONNECTING)
        except asyncio.CancelledError:
            connection.abort("the channel was closed")
            raise
        except Exception as error:  # noqa: BLE001  also a port beyond 65535: whoever waits is told
            reason = str(error) or "no answer in time"
            self._fail(connection, reason, error)
            if not is_made and connection.is_open:
                # It was ready before asyncio had given it to us, and uvloop closes such a socket without a word to it.
                connection.abort(reason)

    def _changed(self, connection: ClientConnection) -> None:
        """It is ready, leaves, or is lost."""
        if connection.is_open and connection.is_ready and not connection.is_leaving:
            self._connection = connection
            self._backoff_s = FIRST_BACKOFF_S
            self._enter(Connectivity.READY)
        elif connection is self._connection and self._state is Connectivity.READY:
            self._connection = None
            self._enter(Connectivity.IDLE)
        elif self._state is Connectivity.CONNECTING and not connection.is_ready:
            self._fail(connection, connection.reason or "the connection was closed")

    def _fail(
        self, connection: ClientConnection, reason: str, error: Exception | None = None
    ) -> None:
        """The connection that is being made comes to nothing. In a program that was busy its time may be over in the same turn of
        the loop in which it became ready: then it has not failed, and is kept."""
        if connection is not self._connection or self._state is not Connectivity.CONNECTING:
            return
        self._connection = None
        self._failure = reason
        self.is_unknown_host = isinstance(error, socket.gaierror | UnicodeError)
        self.is_silent = isinstance(error, TimeoutError)
        self._enter(Connectivity.TRANSIENT_FAILURE)
        connection.abort(reason)
        loop = asyncio.get_running_loop()
        self._later = loop.call_later(self._backoff_s, self._may_try_again)
        self._backoff_s = min(2 * self._backoff_s, MOST_BACKOFF_S)

    def _may_try_again(self) -> None:
        if self._state is Connectivity.TRANSIENT_FAILURE:
            self._enter(Connectivity.IDLE)

    async def close(self, grace: float | None = None) -> None:
        """Calls that are open are cancelled."""
        self._enter(Connectivity.SHUTDOWN)
        if self._later is not None:
            self._later.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            for stream in list(connection.streams.values()):
                assert isinstance(stream, ClientStream)
                stream.on_lost("the channel was closed")
            connection.close()

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()

    # --- its calls -------------------------------------------------------------------------------

    def unary_unary(self, method: str, *args: Any, **given: Any) -> Any:
        return self.showing(self._metadata).unary_unary(method, *args, **given)

    def unary_stream(self, method: str, *args: Any, **given: Any) -> Any:
        return self.showing(self._metadata).unary_stream(method, *args, **given)

    def stream_unary(self, method: str, *args: Any, **given: Any) -> Any:
        return self.showing(self._metadata).stream_unary(method, *args, **given)

    def stream_stream(self, method: str, *args: Any, **given: Any) -> Any:
        return self.showing(self._metadata).stream_stream(method, *args, **given)

    def showing(self, metadata: Metadata) -> Showing:
        """The same channel, with this metadata on every call: several may share it."""
        return Showing(self._asking, metadata)

    def _asking(self, method: Method, always: Metadata) -> Callable[..., Call]:
        def call(
            asked: Any = None,
            *,
            timeout: float | None = None,
            metadata: Sequence[tuple[str, str | bytes]] | None = None,
            wait_for_ready: bool | None = None,
        ) -> Call:
            """Of a stream `asked` are all its requests, if they are known already."""
            own = (*always, *(metadata or ()))
            made = Call(self, method, asked, timeout, bool(wait_for_ready), own)
            if asked is not None and not method.asks_once:
                made.send_each(asked)
            return made

        return call


class Showing:
    """Of a channel that several share: calls, each with the metadata of whoever makes them. For the generated stubs."""

    def __init__(
        self, asking: Callable[[Method, Metadata], Callable[..., Call]], metadata: Metadata
    ) -> None:
        self._asking = asking
        self._metadata = metadata

    def unary_unary(self, method: str, *args: Any, **given: Any) -> Any:
        return self._asking(_method(method, True, *args, **given), self._metadata)

    def stream_stream(self, method: str, *args: Any, **given: Any) -> Any:
        return self._asking(_method(method, False, *args, **given), self._metadata)

    unary_stream = unary_unary
    stream_unary = stream_stream


def _method(
    path: str,
    asks_once: bool,
    request_serializer: Serialize | None = None,
    response_deserializer: Deserialize | None = None,
    _registered_method: bool | None = False,
) -> Method:
    """As the generated stubs name it."""
    return Method(path, request_serializer or bytes, response_deserializer or bytes, asks_once)
