"""Streams of the virtual network: messages in order, each way by itself, until the connection breaks.

The two ends learn of a break at different times: until then the server writes into the void.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from tests.virtual.world.loop import Life
from tests.virtual.world.network import KEEPALIVE_S, Breakable, Network, Place, as_told
from utuple.errors import OutcomeUnknown, UTupleError
from utuple.wire import utuple_pb2 as pb


class Pipe:
    """One direction: what is put in comes out in order, later."""

    def __init__(self, network: Network, sender: str, receiver: str) -> None:
        self._network = network
        self._sender = sender
        self._receiver = receiver
        self._flying: deque[Any] = deque()
        self._queue: deque[Any] = deque()
        self._ready: asyncio.Future[None] | None = None
        self._last_s = 0.0
        self.is_cut = False

    def put(self, item: Any) -> None:
        if self.is_cut:
            return
        loop = self._network.world.loop
        at_s = max(self._last_s, loop.now_s + self._network.delay_s())
        self._last_s = at_s
        self._flying.append(item)
        loop.later(
            at_s - loop.now_s, self._network.pass_by, self._sender, self._receiver, self._land
        )

    def _land(self) -> None:
        if not self.is_cut:
            self._queue.append(self._flying.popleft())
            self._wake()

    def end_with(self, item: Any) -> None:
        """At once, after what has landed: nothing that flies arrives any more."""
        if not self.is_cut:
            self.is_cut = True
            self._flying.clear()
            self._queue.append(item)
            self._wake()

    def _wake(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    async def get(self) -> Any:
        while not self._queue:
            self._ready = self._network.world.loop.create_future()
            await self._ready
        return self._queue.popleft()


class _End:
    """The other side has ended it in order."""


_END = _End()


class _Sink:
    """The server's end for what it sends. Now and then it has no room for a while, and what is sent then waits."""

    def __init__(self, network: Network, server: Life, put: Callable[[Any], None]) -> None:
        self._network = network
        self._server = server
        self._put = put
        self._waiting: list[Any] | None = None
        """None while there is room."""
        self._resume: Callable[[], None] = lambda: None
        self._drained = asyncio.Event()

    @property
    def is_writable(self) -> bool:
        return self._waiting is None

    def send(self, message: Any) -> None:
        if self._waiting is not None:
            self._waiting.append(message)
            return
        self._put(message)
        how_often, for_s = self._network.full
        if self._network.dice.random() < how_often:
            self._waiting = []
            self._drained.clear()
            self._network.world.loop.later(for_s + self._network.delay_s(), self._drain)

    def _drain(self) -> None:
        if self._server.is_alive:
            self._network.world.loop.start(self._server, self._drain_there())

    async def _drain_there(self) -> None:
        waiting, self._waiting = self._waiting or (), None
        for message in waiting:
            self._put(message)
        self._drained.set()
        self._resume()

    def when_writable(self, resume: Callable[[], None]) -> None:
        self._resume = resume

    async def drained(self) -> bool:
        while self._waiting is not None:
            await self._drained.wait()
        return True


class VirtualStream(Breakable):
    """The client's end of a Deliver stream, or of a Read; `serve` is the server's."""

    def __init__(self, network: Network, caller: Life, place: Place, method: str) -> None:
        self.caller = caller
        self.target = place.life
        self._network = network
        self._place = place
        self._method = method
        self._up = Pipe(network, caller.name, place.life.name)
        self._down = Pipe(network, place.life.name, caller.name)
        self._serving: asyncio.Task[None] | None = None
        self._told: tuple[Any, ...] = ()
        """What the handler is told of its caller, on a secured cluster."""
        network.hold(self)

    # --- the client's end ----------------------------------------------------------------------------

    def begin(self, request: Any = None) -> None:
        loop = self._network.world.loop

        def arrive() -> None:
            if self.target.is_alive and not self._up.is_cut:
                self._serving = loop.start(self.target, self._serve(request))

        loop.later(
            self._network.delay_s(),
            self._network.pass_by,
            self.caller.name,
            self.target.name,
            arrive,
        )

    async def send(self, message: pb.FromReader) -> None:
        if self._down.is_cut:
            raise OutcomeUnknown("the stream has ended")
        self._network.weigh(message, self._method)
        self._up.put(message)

    async def receive(self) -> Any:
        item = await self._down.get()
        if isinstance(item, UTupleError):
            self._down.end_with(item)
            raise item
        return None if isinstance(item, _End) else item

    async def receive_all(self, handle: Callable[[Any], None]) -> None:
        while (message := await self.receive()) is not None:
            handle(message)

    def cancel(self) -> None:
        """The server hears of it, unless the link is cut."""
        if not self._down.is_cut:
            self._network.release(self)
            self._down.end_with(OutcomeUnknown("the stream was cut"))
            self._network.world.loop.later(
                self._network.delay_s(),
                self._network.pass_by,
                self.caller.name,
                self.target.name,
                self._stop_serving,
            )

    def break_off(self, why: str) -> None:
        """One end knows now, the other now or a keepalive later."""
        self._network.release(self)
        loop, dice = self._network.world.loop, self._network.dice
        late_s = KEEPALIVE_S * dice.random() if dice.random() < 0.3 else 0.0
        self._network.noticed_s = max(self._network.noticed_s, loop.now_s + late_s)
        client_first = dice.random() < 0.5
        error = OutcomeUnknown(f"the stream broke: {why}")
        loop.later(0.0 if client_first else late_s, self._down.end_with, error)
        loop.later(late_s if client_first else 0.0, self._stop_serving)

    # --- the server's end ----------------------------------------------------------------------------

    async def _serve(self, request: Any) -> None:
        handler = getattr(self._place.service, self._method)
        end: Any = _END
        try:
            trust = self._network.trust
            if trust is not None:
                self._told = trust.caller(self._place, self._method, self.caller)
            if request is None:
                sink = _Sink(self._network, self.target, self._put)
                await handler(self._said(), sink, *self._told)
                await sink.drained()
            else:
                async with aclosing(handler(request, *self._told)) as messages:
                    async for message in messages:
                        self._put(message)
        except UTupleError as error:
            end = as_told(error)
        except Exception as error:  # noqa: BLE001  a bug of the program: found
            self._network.world.bug(f"{self.target} {self._method}", error)
            end = OutcomeUnknown(str(error))
        self._network.release(self)
        self._down.put(end)

    def _put(self, message: Any) -> None:
        if self._network.trust is not None and self._told and self._method == "deliver":
            self._network.trust.delivered(self.target.name, self._told[0], message)
        self._network.weigh(message, f"answer of {self._method}")
        self._down.put(message)

    async def _said(self) -> AsyncIterator[pb.FromReader]:
        while True:
            yield await self._up.get()

    def _stop_serving(self) -> None:
        self._up.is_cut = True
        if self._serving is not None:
            self._serving.cancel()


async def opened(network: Network, address: str, method: str, timeout_s: float) -> VirtualStream:
    caller, place = await network.connect(address, timeout_s)
    stream = VirtualStream(network, caller, place, method)
    stream.begin()
    return stream


async def streamed(
    network: Network, address: str, method: str, request: Any, timeout_s: float
) -> AsyncGenerator[Any, None]:
    """A call that is answered by many messages."""
    caller, place = await network.connect(address, timeout_s)
    stream = VirtualStream(network, caller, place, method)
    stream.begin(request)
    try:
        while (message := await stream.receive()) is not None:
            yield message
    finally:
        stream.cancel()
