"""One reader's Deliver stream: what it says goes to the core, what waits in its outbox is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

import grpc

from sca_server import messages
from sca_server.config import Config
from sca_server.core import Core
from sca_server.outbox import Parcel
from sca_server.readers import Round, Stream
from utuple.errors import InvalidInput, Unavailable
from utuple.runtime import clock
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_from_wire, said_in


class Session:
    def __init__(
        self,
        config: Config,
        core: Core,
        stream: Stream,
        *,
        wake: Callable[[Stream | None], None],
        answer: Callable[[Iterable[Round]], None],
    ) -> None:
        self._config = config
        self._core = core
        self._stream = stream
        self._wake_other = wake
        self._answer = answer
        self._something = asyncio.Event()
        self._written = asyncio.Event()
        self._closing = False

    def wake(self) -> None:
        self._something.set()

    def close(self) -> None:
        """The server stops: write what waits, then end."""
        self._closing = True
        self._something.set()

    async def run(
        self, said: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> None:
        """Until the reader ends it, breaks a rule, or the server stops."""
        listening = asyncio.create_task(self._listen(said))
        writing = asyncio.create_task(self._write(context))
        try:
            await asyncio.wait((listening, writing), return_when=asyncio.FIRST_COMPLETED)
            if not writing.done() and listening.exception() is None:
                self.close()  # an orderly good-bye gets its answers
                await asyncio.wait((writing,), timeout=self._config.flush_s)
        finally:
            writing.cancel()
            listening.cancel()
            await asyncio.gather(listening, writing, return_exceptions=True)
        if not listening.cancelled() and (error := listening.exception()) is not None:
            raise error
        if listening.cancelled():
            raise Unavailable("this sCA server stops")

    async def _listen(self, said: AsyncIterator[bytes]) -> None:
        async for raw in said:
            for message in said_in(messages.parse(pb.FromReader, raw)):
                self._hear(message)
            while self._stream.outbox.notes > self._config.max_notes:
                self._written.clear()
                await self._written.wait()

    def _hear(self, message: pb.FromReader) -> None:
        now_us = clock.now_us()
        match message.WhichOneof("message"):
            case "attach":
                self._attach(message.attach, now_us)
            case "detach":
                detach = message.detach
                self._core.detach(
                    self._stream,
                    detach.id,
                    cancel=detach.cancel,
                    now_us=now_us,
                    generation=detach.generation,
                )
                self.wake()
            case "confirm":
                formals, commands = messages.confirmed(message.confirm)
                self._answer(self._core.readers.confirm(self._stream, formals, commands))
            case "taken" | "acknowledge":
                pass  # of EFs; commands are confirmed
            case _:
                raise InvalidInput("message", None, "must attach, detach or confirm")

    def _attach(self, attach: pb.Attach, now_us: int) -> None:
        if not attach.device:
            raise InvalidInput("device", False, "an sCA server delivers to devices (CFs) only")
        columns = None
        if attach.HasField("registration"):
            columns, _ = columns_from_wire(attach.registration)
        replaced = self._core.attach(
            self._stream, attach.id, attach.reader, columns, now_us, attach.generation
        )
        self._wake_other(replaced)
        self.wake()

    async def _write(self, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        while True:
            self._something.clear()
            while (taken := self._stream.outbox.take(clock.monotonic_s())) is not None:
                if isinstance(taken, Parcel):
                    message = messages.deliveries_to_wire(taken, self._config.name)
                else:
                    message = messages.note_to_wire(taken)
                await context.write(message.SerializeToString())
                self._written.set()
            if self._closing:
                return
            await self._something.wait()
