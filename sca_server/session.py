"""One reader's Deliver stream: what it says goes to the core, what waits in its outbox is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress

from sca_server import messages
from sca_server.config import Config
from sca_server.core import Core
from sca_server.judging import ScaJudge
from sca_server.outbox import Parcel, Servers
from sca_server.readers import Round, Stream
from utuple.delivery.notice import News, Notice
from utuple.errors import InvalidInput, NotAllowed, Overloaded, Unavailable
from utuple.model.columns import Columns
from utuple.runtime import clock
from utuple.security.identity import Identity
from utuple.security.owners import may_use, owned
from utuple.transport.duplex import MessageSink
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_from_wire, said_in
from utuple.wire.deliveries import confirmed_from_wire, notice_to_wire


class Session:
    def __init__(
        self,
        config: Config,
        core: Core,
        stream: Stream,
        sink: MessageSink,
        *,
        wake: Callable[[Stream | None], None],
        answer: Callable[[Iterable[Round]], None],
        judge: ScaJudge | None = None,
        caller: Identity | None = None,
    ) -> None:
        self._judge = judge if caller is not None else None
        self._caller = caller
        self._config = config
        self._core = core
        self._stream = stream
        self._sink = sink
        self._wake_other = wake
        self._answer = answer
        self._listening: asyncio.Task[None] | None = None
        self._flushing: asyncio.Handle | None = None
        sink.when_writable(self.wake)

    def wake(self) -> None:
        """There is something to write: once in this turn of the event loop, so that what several calls hand to this
        reader leaves as one message."""
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Write while there is room. What finds none stays in the outbox, which is bounded."""
        self._flushing = None
        while self._sink.is_writable:
            item = self._stream.outbox.pop(clock.monotonic_s())
            if item is None:
                return
            if isinstance(item, Parcel):
                message = messages.deliveries_to_wire(item, self._config.name)
            elif isinstance(item, Servers):
                message = messages.servers_to_wire(item)
            else:
                message = notice_to_wire(item)
            self._sink.send(message.SerializeToString())

    def close(self) -> None:
        """The server stops: write what waits, then end."""
        if self._listening is not None:
            self._listening.cancel()

    async def run(self, said: AsyncIterator[bytes]) -> None:
        """Until the reader ends it, breaks a rule, or the server stops."""
        self._listening = asyncio.create_task(self._listen(said))
        try:
            await asyncio.wait((self._listening,))
            with suppress(TimeoutError):  # an orderly goodbye gets its answers
                async with asyncio.timeout(self._config.flush_s):
                    await self._flushed()
        finally:
            self._listening.cancel()
            if self._flushing is not None:
                self._flushing.cancel()
        if self._listening.cancelled():
            raise Unavailable("this sCA server stops")
        self._listening.result()

    async def _flushed(self) -> None:
        self._flush()
        while not self._stream.outbox.is_empty and await self._sink.drained():
            self._flush()

    async def _listen(self, said: AsyncIterator[bytes]) -> None:
        async for raw in said:
            for message in said_in(messages.parse(pb.FromReader, raw)):
                self._received(message)
            if self._stream.outbox.notices > self._config.max_notes:
                await self._flushed()

    def _received(self, message: pb.FromReader) -> None:
        now_us = clock.now_us()
        match message.WhichOneof("message"):
            case "attach":
                self._attach(message.attach, now_us)
            case "detach":
                detach = message.detach
                self._check_own(detach.id, now_us)
                self._core.detach(
                    self._stream,
                    detach.id,
                    cancel=detach.cancel,
                    now_us=now_us,
                    generation=detach.generation,
                    by="" if self._caller is None else self._caller.name,
                )
                self.wake()
            case "confirm":
                formals, commands = confirmed_from_wire(message.confirm)
                self._answer(self._core.readers.confirm(self._stream, formals, commands))
            case "bringing":
                self._core.tenure.bring(self._stream, more=message.bringing.more)
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
        reader = attach.reader
        if self._judge is not None and self._caller is not None:
            columns, reason = self._judged(attach, columns, now_us)
            if reason:
                notice = Notice(News.NOT_ALLOWED, attach.id, attach.generation, reason=reason)
                self._stream.outbox.put(notice)
                self.wake()
                return
            reader = owned(self._caller.name, reader) if reader else ""
        replaced = self._core.attach(
            *(self._stream, attach.id, reader, columns, now_us),
            *(attach.generation, attach.attempt),
        )
        self._wake_other(replaced)
        self._core.tenure.came(self._core.awake.at(clock.monotonic_s()))
        self.wake()

    # --- who may have what (law 8) --------------------------------------------------------------------

    def _judged(
        self, attach: pb.Attach, columns: Columns | None, now_us: int
    ) -> tuple[Columns | None, str]:
        """The CF that comes along, under its owner's name; and why it may not be attached, or nothing."""
        assert self._judge is not None
        assert self._caller is not None
        device = self._core.index.get(attach.id, now_us)
        if columns is not None:
            columns, wrong = self._judge.devices(columns, self._caller)
            if wrong:
                return columns, str(wrong[0][1])
            try:
                self._judge.shares.keep(self._caller.name, int(device is None))
            except Overloaded as over:
                return columns, str(over)
        return columns, "" if device is None else self._judge.may_serve(device, self._caller).reason

    def _check_own(self, formal: bytes, now_us: int) -> None:
        device = self._core.index.get(formal, now_us)
        if device is None or self._caller is None:
            return
        if reason := may_use(self._caller, device.reader).reason:
            raise NotAllowed(reason)

    def judge_again(self) -> None:
        """Other grants are in force: a CF whose program may not serve it any longer gets no more commands."""
        if self._judge is None or self._caller is None:
            return
        attached = self._core.readers.attached
        for formal in attached.on(self._stream):
            device = self._core.index.get(formal, clock.now_us())
            if device is None:
                continue
            if reason := self._judge.may_serve(device, self._caller).reason:
                generation = attached.generation_of(formal)
                self._core.detach(
                    self._stream,
                    formal,
                    cancel=False,
                    now_us=clock.now_us(),
                    generation=generation,
                )
                self._stream.outbox.put(Notice(News.NOT_ALLOWED, formal, generation, reason=reason))
                self.wake()
