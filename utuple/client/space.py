"""The space: the verbs of the public face, asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Self, TypeVar
from uuid import UUID

from utuple.client import arguments
from utuple.client.arguments import AddressAsked, Place
from utuple.client.parts import Parts
from utuple.client.reading.paging import PagedReading
from utuple.client.reading.read import Reading, StoredEvents
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.receiving.device import Device
from utuple.client.receiving.drops import OnDropped
from utuple.client.receiving.watch import Watch
from utuple.client.routing.outcome import PendingCommand, PendingCommands, PendingEvents
from utuple.client.sending.command import send_command
from utuple.client.sending.command_many import CommandPipeline, command_again
from utuple.client.sending.emit import Coalescer, EventPipeline, emit_columns
from utuple.client.sending.notices import Notices, check_notify
from utuple.client.sending.pipeline import run_pipeline
from utuple.client.sending.receipt import Receipt, Receipts
from utuple.client.sending.rows import DEFAULT_LIFETIME_S
from utuple.client.sending.simple_commands import ScaCalls
from utuple.errors import Closed, InvalidInput, OutcomeUnknown
from utuple.model.area import Area, Position
from utuple.model.terms import KEEP, DropPolicy
from utuple.model.utuple import Exact, UTuple
from utuple.model.value import Value

D = TypeVar("D", bound=Deliveries)

NAMED_LIFETIME_S = 86_400
"""A reader with a name is kept this long after it was last seen."""


class Space:
    """The verbs: `emit`, `emit_many`, `watch`, `read`, `serve`, `command`, `command_many`. Made by `utuple.connect`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._coalescer = Coalescer(parts)
        self._sca = ScaCalls(parts)
        self._notices = Notices(parts)
        self._open: set[Deliveries] = set()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def timeout_s(self) -> float:
        """How long a verb may take."""
        return self._parts.config.timeout_s

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> Self:
        """Make sure that a cluster answers. Entering `async with` does it."""
        self._check_here()
        try:
            await self._parts.lines.first_contact()
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Close every watch and device, acknowledgements flushed, then the connections. Verbs that other tasks have
        under way end: answered if that takes no more than a moment, else `Closed`, or `OutcomeUnknown` if they were
        sent. Whoever calls it, and however often, waits until it is done."""
        self._parts.own_loop.check()
        self._closed = True
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await asyncio.gather(
            self._notices.close(),
            self._sca.close(),
            self._parts.batcher.close(),
            *(deliveries.close() for deliveries in list(self._open)),
        )
        await self._parts.close()

    async def emit(
        self,
        *,
        subject: str,
        type: str,
        address: str,
        data: Mapping[str, Value],
        position: Position | None = None,
        time: datetime | None = None,
        lifetime_s: float = DEFAULT_LIFETIME_S,
        id: UUID | None = None,
    ) -> None:
        """Register one event (EA); returns when it is durable.

            await space.emit(subject="truck", type="load", address="truck-17",
                             position=(35.68, 139.76), data={"kg": 1200})

        `time` is now unless given, and has a zone; `position` is (latitude, longitude). With
        `lifetime_s=0` it reaches those who watch now and is not kept: who is away for some seconds, or takes so slowly that no
        room is left for it, misses it and is not told. `id` is made here unless given: a gateway that
        must find its own events again names them itself. No two events may have the same one.

        Events of one address, one emitted after the other is registered, reach every watcher in that order while load does not move;
        one of lifetime 0 may be overtaken by one that is kept.

        Raises `InvalidInput` before anything is sent; `NotRegistered` if it surely was not registered;
        `OutcomeUnknown` if the answer was lost, then `await space.retry(error)` is safe.
        """
        self._check_here()
        event = {
            "subject": subject,
            "type": type,
            "address": address,
            "position": position,
            "data": data,
            "time": time,
            "lifetime_s": lifetime_s,
            "id": id,
        }
        await self._coalescer.emit(event)

    async def emit_many(self, events: Iterable[Mapping[str, Any]]) -> int:
        """Register many events, the fast way for gateways; returns how many, when all are durable.

            await space.emit_many({"subject": "truck", "type": "load", "address": name,
                                   "data": {"kg": kg}} for name, kg in readings)

        Each is a mapping of `emit`'s arguments. Those that are invalid are refused, the others registered;
        then it raises `SomeRefused`, whose `.refused` says why by the event's number, with fields such as
        `events[17].data.kg`. (After 10,000 refusals it takes no more from the iterable.) After
        `OutcomeUnknown`, `space.retry(error)` registers the rest of what had been taken from the iterable, and
        `error.reached` is the number to go on with; what was refused of it is the error's `__cause__`. When the iterable itself fails, what it gave before is
        registered and `SomeRegistered` says how far it came.

        Unlike `emit` it keeps no order: where several servers share the load its events may reach a watcher mixed, also
        those of one address. A watcher that minds sorts by `event.time`.
        """
        self._check_here()
        return await run_pipeline(self.emitting(events))

    def emitting(self, events: Iterable[Mapping[str, Any]]) -> EventPipeline:
        """`emit_many` in its steps, for who has no event loop."""
        self._check_open()
        return EventPipeline(self._parts, events)

    def watch(
        self,
        *,
        subject: str,
        type: str,
        address: AddressAsked = None,
        area: Area | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        where: Mapping[str, object] | None = None,
        reader: str | None = None,
        lifetime_s: float = NAMED_LIFETIME_S,
        absent: DropPolicy = KEEP,
        ack_within_s: float | None = None,
        attempts: int | None = None,
        share: bool = False,
        sticky: bool = False,
        on_dropped: OnDropped | None = None,
    ) -> Watch:
        """Events that match (EF): the stored ones first, then live ones, without a gap.

            async with space.watch(subject="truck", type="load", area=Box(35.5, 139.5, 35.9, 140.0),
                                   where={"kg": at_least(1000)}, reader="dispatch") as events:
                async for event in events:
                    print(event.address, event.data["kg"])
                    await event.ack()

        With a `reader` name, the program may stop and start again: it is given what it had not acknowledged, as long
        as it comes back within `lifetime_s`. Without one the watch lives as long as its connection. `absent` is the
        drop policy for what matches meanwhile: `keep()`, `newest(n)`, … What is dropped is declared: `events.dropped`. Counts
        are those of each server: where several share the load, up to n of each come.

        With `ack_within_s` (60), `attempts` (5) or `share=True` each delivery is settled by itself: if it is not acknowledged
        in time, or refused by `event.nack(after_s=5)`, it comes again; after so many attempts it is parked. With
        `share=True` each goes to one of the programs of this name; `sticky=True`: those of one address to the same.

        Events come in the order their server registered them, whatever their `time` says; those of several
        servers come mixed: sort by `event.time` where the order matters.
        """
        self._check_open()
        own = self._parts.config.session_lifetime_s
        arguments.check_reader_lifetime(lifetime_s)
        wanted = arguments.formal(
            self._parts.new_id(),
            subject,
            type,
            arguments.template(Place(address, area, since, until)),
            where,
            self._session_name() if reader is None else reader,
            own if reader is None else lifetime_s,
            arguments.agreed(reader, absent, ack_within_s, attempts, share=share, sticky=sticky),
        )
        named = reader is not None
        wanted = arguments.named(wanted, self._parts.owner) if named else wanted
        return self._kept(Watch(self._parts, wanted, named=named, on_dropped=on_dropped))

    def read(
        self,
        *,
        subject: str,
        type: str,
        address: AddressAsked = None,
        area: Area | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        where: Mapping[str, object] | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> StoredEvents:
        """Events that are stored now and match (EF of lifetime 0); then it ends.

            async for event in space.read(subject="truck", type="load", address=prefix("truck-")):
                print(event.time, event.data)

        All of them come in the order each server registered them, those of several servers mixed. With
        `limit` or `newest_first` they come in order of their time (those of the same time by id): the
        oldest so many, or the newest, found without looking at all others.

            async for event in space.read(subject="truck", type="load", limit=100, newest_first=True): ...

        `timeout_s` is for each wait for rows, the first and all further ones: else it fails, `Unavailable`.
        """
        self._check_open()
        limit = arguments.check_limit(limit, newest_first)
        id_, reader = self._reading_as  # nobody remembers it
        place = arguments.template(Place(address, area, since, until))
        wanted = arguments.formal(id_, subject, type, place, where, reader, 0)
        if limit is None and not newest_first:
            return StoredEvents(self._parts, Reading(self._parts, wanted))
        paged = PagedReading(self._parts, wanted, limit, newest_first=newest_first)
        return StoredEvents(self._parts, paged)

    def serve(
        self,
        *,
        subject: str,
        type: str,
        address: str,
        position: Position | None = None,
        where: Mapping[str, object] | None = None,
        reader: str | None = None,
        lifetime_s: float = NAMED_LIFETIME_S,
    ) -> Device:
        """Commands to this device (CF).

            async with space.serve(subject="aircon", type="power", address="room-101",
                                   where={"on": bool}) as commands:
                async for command in commands:
                    switch(command.data["on"])

        A command that is in this program's hands is confirmed to its sender. `reader` and `lifetime_s`
        are those of `watch`.
        """
        self._check_open()
        arguments.check_reader_lifetime(lifetime_s)
        named = reader is not None
        device = arguments.formal(
            self._parts.new_id(),
            subject,
            type,
            Exact(address, self._parts.now_us(), position),
            where,
            self._session_name() if reader is None else reader,
            lifetime_s if named else self._parts.config.session_lifetime_s,
        )
        device = arguments.named(device, self._parts.owner) if named else device
        return self._kept(Device(self._parts, self._sca, device, named=named))

    async def command(
        self,
        *,
        subject: str,
        type: str,
        data: Mapping[str, Value],
        address: AddressAsked = None,
        area: Area | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        lifetime_s: float = 0,
        everywhere: bool = False,
        notify: str | None = None,
    ) -> Receipt:
        """Command one device, or every device that matches (CA); says who got it.

            receipt = await space.command(subject="aircon", type="power", address="room-101",
                                          data={"on": False})
            if not receipt:
                print(receipt)              # no device matched: aircon/power at 'room-101' …

        With `lifetime_s`, devices that come within that time get it too. `since` and `until` are about
        the time the device was registered. Without `address` and `area` it goes to every device of this
        subject and type, which must be said: `everywhere=True`.

        With `notify="expired"` an event is emitted when the lifetime is over, for each device that was met and never got
        it: of this subject and type, at the device's address, with `{"command": ID, "expired": True}`. Whoever wants to
        know watches for it. It is sent by this space, if that is open then: `end` waits until it is done.
        """
        self._check_here()
        check_notify(notify, lifetime_s)
        command = arguments.commanding(
            self._parts.new_id(),
            subject,
            type,
            Place(address, area, since, until),
            data,
            lifetime_s,
            everywhere=everywhere,
        )
        tries = self._parts.tries()
        return self._followed(
            command, await send_command(self._parts, self._sca, command, tries, notify), notify
        )

    def _followed(self, command: UTuple, receipt: Receipt, notify: str | None) -> Receipt:
        return receipt if notify is None else self._notices.follow(command, receipt)

    async def command_many(self, commands: Iterable[Mapping[str, Any]]) -> Receipts:
        """Command many devices, one address each, the fast way; a receipt for each, in their order.

            receipts = await space.command_many({"subject": "aircon", "type": "power", "address": room,
                                                 "data": {"on": False}} for room in rooms)
            print(receipts.handed_over, "of", len(receipts))

        Each is a mapping of `subject`, `type`, `address` and `data`; for an area or a lifetime there is
        `command`. They are checked and sent slice by slice: an invalid one raises `InvalidInput` with a
        field such as `commands[17].address`, or `SomeRegistered` from it if some were sent before: it has their
        receipts, and says where to go on. The same when the iterable itself fails. After `OutcomeUnknown`,
        `space.retry(error)` sends again what was not answered, and gives the receipts of that.
        """
        self._check_here()
        return await run_pipeline(self.commanding(commands))

    def commanding(self, commands: Iterable[Mapping[str, Any]]) -> CommandPipeline:
        """`command_many` in its steps."""
        self._check_open()
        return CommandPipeline(self._parts, self._sca, commands)

    async def retry(self, error: OutcomeUnknown) -> object:
        """Do again what ended in `OutcomeUnknown`, with the same ids, so that it happens once.

        Returns what the verb would have: nothing for `emit`, how many for `emit_many`'s rest, a receipt
        for `command`, receipts for `command_many`'s rest, the open watch or device for those.
        """
        self._check_here()
        match error.pending:
            case PendingEvents(columns):
                await emit_columns(self._parts, columns, retry=True)
                return len(columns)
            case PendingCommand(command, notify):
                tries = self._parts.tries(retry=True)
                sent = await send_command(self._parts, self._sca, command, tries, notify)
                return self._followed(command, sent, notify)
            case PendingCommands(slices):
                return await command_again(self._parts, self._sca, slices)
            case Deliveries() as deliveries:
                return await deliveries.open(retry=True)
        raise InvalidInput("error", error, "must be an OutcomeUnknown that one of the verbs raised")

    @cached_property
    def _reading_as(self) -> tuple[bytes, str]:
        return self._parts.new_id(), self._session_name()

    def _session_name(self) -> str:
        return f"session-{UUID(bytes=self._parts.new_id())}"

    def _kept(self, deliveries: D) -> D:
        deliveries.when_open(self._open.add, self._open.discard)
        return deliveries

    def _check_here(self) -> None:
        self._check_open()
        self._parts.own_loop.check()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this space is closed")
