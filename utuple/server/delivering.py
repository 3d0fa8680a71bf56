"""Delivering: carries out what cursors and devices decide. Readers' streams, stored searches, commands.

Stored searches run a few at a time, beside the writer. Commands are searched one after another in seq
order, so that a device gets them in that order."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from utuple.errors import NotRegistered, OutcomeUnknown
from utuple.model.columns import Columns, lifetime_us
from utuple.model.utuple import Family, Kind
from utuple.model.value import encode_data
from utuple.runtime.clock import now_us
from utuple.runtime.logs import Log
from utuple.server.cursors import Cursor, Cursors, Reading, Sending
from utuple.server.devices import Device, Devices, Handed
from utuple.server.outbox import CommandSending, News, Notice, Outbox
from utuple.server.request import Request
from utuple.server.writer import Housekeeping, Prepared, Writer
from utuple.store.contract import Recovered, Search, StoredTemplate, StoreUnavailable

if TYPE_CHECKING:
    from utuple.server.engine import Engine

_log = Log("utuple.server.delivering")
_RECENT_DEVICES = 10_000
"""CFs remembered after registration: their attachment, which follows at once, needs no search."""


@dataclass(slots=True)
class Handover:
    """A command's way to its devices. What a device has confirmed stays so, even if it leaves at once."""

    found: asyncio.Event = field(default_factory=asyncio.Event)
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    devices: list[tuple[bytes, str]] = field(default_factory=list)
    sent: set[bytes] = field(default_factory=set)
    have_it: set[bytes] = field(default_factory=set)

    def settle(self) -> None:
        if self.found.is_set() and self.sent <= self.have_it:
            self.confirmed.set()

    def handed(self, formal: bytes) -> Handed:
        if formal in self.have_it:
            return Handed.HANDED_OVER
        return Handed.NOT_CONFIRMED if formal in self.sent else Handed.NOT_CONNECTED


class Delivering:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.cursors = Cursors(0, engine.config.max_stream_rows)
        self.devices = Devices()
        self.delivered = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self._outboxes: dict[int, Outbox] = {}
        self._next_stream = 0
        self._readings = 0
        self._recent: OrderedDict[bytes, Columns] = OrderedDict()
        self._commands: asyncio.Queue[StoredTemplate] = asyncio.Queue()
        self._handovers: dict[bytes, Handover] = {}
        self._renewals: dict[bytes, int] = {}

    def take_over(self, writer: Writer, recovered: Recovered) -> None:
        """The store was opened (again): positions are what it says or newer, and all must catch up."""
        self.cursors.restore(recovered.positions)
        self.cursors.fall_behind(writer.seq)
        for cursor in self.cursors:
            if cursor.id not in writer.templates:
                self._tell(cursor.stream, Notice(News.UNKNOWN, cursor.id))
                self.cursors.detach(cursor.id)
        for device in self.devices:
            self._match_device(device)
        if not any(task.get_name() == "commands" for task in self.tasks):
            self._spawn(self._hand_out_forever(), "commands")
        self._engine.wake()
        self._pump()

    def housekeeping(self) -> Housekeeping:
        renewals, self._renewals = self._renewals, {}
        return Housekeeping(self.cursors.unsaved_positions(), list(renewals.items()))

    # --- after a commit --------------------------------------------------------------------------

    def committed(self, prepared: Prepared) -> None:
        for id_ in prepared.cancelled:
            self.cursors.forget(id_)
            self.devices.detach(id_)
            self._recent.pop(id_, None)
        for sending in self.cursors.commit(prepared.transaction.seq, prepared.events):
            self._send(sending)
        for batch, matches in prepared.devices:
            for row, id_ in enumerate(batch.columns.each_id()):
                self._recent[id_] = batch.columns.take([row])
                self._recent.move_to_end(id_)
            for match in matches:
                self._give(batch.columns.id_at(match.row), match.id)
        while len(self._recent) > _RECENT_DEVICES:
            self._recent.popitem(last=False)
        for stored in prepared.commands:
            self._commands.put_nowait(stored)
        self._pump()

    def tick(self, now: int) -> None:
        """Formals whose readers are connected live on; dead templates leave memory."""
        writer = self._engine.writer
        for cursor in self.cursors:
            stored = writer.templates.get(cursor.id)
            if stored is not None:
                life = lifetime_us(stored.utuple.lifetime_s)
                if stored.expires_us - now < life // 2:
                    self._renewals[cursor.id] = now + life
        for device in self.devices:
            if device.expires_us - now < device.lifetime_us // 2:
                device.expires_us = self._renewals[device.id] = now + device.lifetime_us
        for id_ in writer.drop_expired(now):
            if self.cursors.get(id_) is None:
                self.cursors.forget(id_)
        if self._renewals or self.cursors.has_unsaved:
            self._engine.wake()
        self._pump()

    # --- streams ---------------------------------------------------------------------------------

    def open_stream(self) -> tuple[int, Outbox]:
        self._next_stream += 1
        outbox = self._outboxes[self._next_stream] = Outbox()
        self.cursors.open_stream(self._next_stream)
        return self._next_stream, outbox

    def close_stream(self, stream: int) -> None:
        for formal in (*self.cursors.on(stream), *self.devices.on(stream)):
            self._seen(formal)
        self.cursors.close_stream(stream)
        self.devices.close_stream(stream)
        self._engine.wake()
        outbox = self._outboxes.pop(stream, None)
        if outbox is not None:
            outbox.close()

    def written(self, stream: int, rows: int) -> None:
        self.delivered += rows
        self.cursors.written(stream, rows)
        self._pump()

    def attach(self, stream: int, formal: bytes, window: int, after: int | None) -> None:
        """An EF's reader is here. `after` None: go on after what was acknowledged."""
        stored = self._engine.writer.templates.get(formal)
        if stored is None or stored.utuple.kind is not Kind.EF:
            self._tell(stream, Notice(News.UNKNOWN, formal))
            return
        begin = self.cursors.acknowledged(formal) if after is None else after
        window = min(max(1, window), self._engine.config.max_window)
        replaced = self.cursors.attach(formal, stored.utuple.reader or "", stream, window, begin)
        if replaced is not None:
            self._tell(replaced, Notice(News.REPLACED, formal))
        self._tell(stream, Notice(News.ATTACHED, formal))
        self._pump()

    async def attach_device(
        self, stream: int, formal: bytes, window: int, after: int | None
    ) -> None:
        row = await self._device_row(formal)
        if row is None or stream not in self._outboxes:
            self._tell(stream, Notice(News.UNKNOWN, formal))
            return
        device = Device(
            formal,
            row.readers[0] if row.readers else "",
            stream,
            row,
            min(max(1, window), self._engine.config.max_window),
            self.cursors.acknowledged(formal) if after is None else after,
            row.lifetimes_us[0],
            now_us() + row.lifetimes_us[0] // 4,  # renewed at the next tick
        )
        replaced = self.devices.attach(device)
        if replaced is not None:
            self._tell(replaced, Notice(News.REPLACED, formal))
        self._tell(stream, Notice(News.ATTACHED, formal))
        self._match_device(device)

    async def _device_row(self, formal: bytes) -> Columns | None:
        row = self._recent.get(formal)
        if row is not None:
            return row
        async with aclosing(self._engine.store.devices(now_us(), [formal])) as found:
            async for batch in found:
                return batch.columns
        return None

    def detach(self, stream: int, formal: bytes, *, cancel: bool) -> None:
        """Answered when the reader's positions, or its end, are durable."""
        family = self._family_of(formal)
        request = Request()
        if cancel and family is not None:
            epoch = self._engine.writer.lines.epoch_of(family)
            request = Request(cancels=[(0, formal, family)], epochs={family: epoch})
        held = self.cursors.get(formal) or self.devices.get(formal)
        if held is not None and held.stream == stream:
            self._seen(formal)
            self.cursors.detach(formal)
            self.devices.detach(formal)
        self._spawn(self._say_goodbye(stream, formal, request), "goodbye")

    async def _say_goodbye(self, stream: int, formal: bytes, request: Request) -> None:
        try:
            await self._engine.register(request)
        except (
            NotRegistered,
            OutcomeUnknown,
        ) as error:  # the reader will not hear of it and has a time-out
            _log.warning("goodbye not registered", reason=error)
        else:
            self._tell(stream, Notice(News.DETACHED, formal))

    def _seen(self, formal: bytes) -> None:
        """Its reader was here until now: from now on its lifetime counts."""
        stored = self._engine.writer.templates.get(formal)
        device = self.devices.get(formal)
        if stored is not None:
            self._renewals[formal] = now_us() + lifetime_us(stored.utuple.lifetime_s)
        elif device is not None:
            self._renewals[formal] = now_us() + device.lifetime_us

    def _family_of(self, formal: bytes) -> Family | None:
        stored = self._engine.writer.templates.get(formal)
        if stored is not None:
            return stored.utuple.family
        device = self.devices.get(formal)
        row = device.row if device is not None else self._recent.get(formal)
        return row.families[row.family[0]] if row is not None else None

    def taken(self, formal: bytes, count: int) -> None:
        self.cursors.taken(formal, count)
        if self.devices.taken(formal, count):
            device = self.devices.get(formal)
            assert device is not None
            self._match_device(device)
        self._pump()

    def acknowledge(self, formal: bytes, origin: str, seq: int) -> None:
        if self.cursors.acknowledge(formal, origin, seq):
            self._engine.wake()

    def _tell(self, stream: int, item: Notice | Sending | CommandSending) -> None:
        outbox = self._outboxes.get(stream)
        if outbox is not None:
            outbox.put(item)

    def _send(self, sending: Sending) -> None:
        self._tell(sending.stream, sending)

    # --- stored searches -------------------------------------------------------------------------

    def _pump(self) -> None:
        while self._engine.state == "serving" and self._readings < self._engine.config.max_readings:
            reading = self.cursors.next_reading()
            if reading is None:
                return
            self._readings += 1
            self._spawn(self._read(reading), "reading")

    def _spawn(self, work: Coroutine[object, object, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _read(self, reading: Reading) -> None:
        cursor = self.cursors.get(reading.formal)
        stored = self._engine.writer.templates.get(reading.formal)
        try:
            if cursor is not None and stored is not None:
                await self._search(cursor, reading, stored)
        except StoreUnavailable as error:
            _log.warning("stored search broken off", reason=error)
            if cursor is not None:
                await asyncio.sleep(self._engine.config.reopen_s)
                self.cursors.break_reading(cursor)
        finally:
            self._readings -= 1
            self._pump()

    async def _search(self, cursor: Cursor, reading: Reading, stored: StoredTemplate) -> None:
        search = Search(stored.utuple, reading.after, reading.upto, now_us())
        async with aclosing(self._engine.store.search(search)) as found:
            async for batch in found:
                sending, go_on = self.cursors.read(cursor, batch)
                if sending is not None:
                    self._send(sending)
                if not go_on:
                    return
        for sending in self.cursors.end_reading(cursor):
            self._send(sending)

    # --- commands --------------------------------------------------------------------------------

    def expect(self, command: bytes) -> Handover:
        """Someone waits for this command's devices; ends with `forget`."""
        return self._handovers.setdefault(command, Handover())

    def forget(self, command: bytes) -> None:
        self._handovers.pop(command, None)

    def confirm(self, formal: bytes, command: bytes) -> None:
        """A device's program has this command."""
        self.devices.confirm(formal, command)
        handover = self._handovers.get(command)
        if handover is not None:
            handover.have_it.add(formal)
            handover.settle()

    async def _hand_out_forever(self) -> None:
        while True:
            stored = await self._commands.get()
            while True:
                try:
                    await self._hand_out(stored)
                    break
                except StoreUnavailable as error:
                    _log.warning("command search broken off", reason=error)
                    await asyncio.sleep(self._engine.config.reopen_s)

    async def _hand_out(self, stored: StoredTemplate) -> None:
        """Give a CA to the stored CFs it meets."""
        command = stored.utuple.id
        handover = self._handovers.get(command, Handover())
        handover.devices.clear()
        payload = encode_data(stored.utuple.data or {})
        search = Search(stored.utuple, 0, stored.seq, now_us())
        async with aclosing(self._engine.store.search(search)) as found:
            async for batch in found:
                for row, formal in enumerate(batch.columns.each_id()):
                    handover.devices.append((formal, batch.columns.addresses[row]))
                    self._give_one(formal, stored, payload, waited=False)
                    if self.devices.has(formal, command):
                        handover.have_it.add(formal)
                    elif self.devices.get(formal) is not None:
                        handover.sent.add(formal)
        handover.found.set()
        handover.settle()

    def _give(self, formal: bytes, command: bytes) -> None:
        stored = self._engine.writer.templates.get(command)
        if stored is not None:
            self._give_one(formal, stored, encode_data(stored.utuple.data or {}), waited=True)

    def _give_one(
        self, formal: bytes, stored: StoredTemplate, payload: bytes, *, waited: bool
    ) -> None:
        if not self.devices.give(formal, stored.utuple.id):
            return
        device = self.devices.get(formal)
        assert device is not None
        self._tell(
            device.stream,
            CommandSending(
                formal,
                stored.utuple.id,
                stored.seq,
                stored.utuple.family,
                device.row.addresses[0],
                payload,
                waited,
            ),
        )

    def _match_device(self, device: Device) -> None:
        """The living CAs a device has not acknowledged, oldest first."""
        writer = self._engine.writer
        found = [writer.templates[match.id] for match in writer.commands_for(device.row, now_us())]
        for stored in sorted(found, key=lambda stored: stored.seq):
            if device.after < stored.seq <= self.cursors.committed:
                self._give(device.id, stored.utuple.id)
