"""The twins of a uTupleServer and of an sCA server: lists, and `matches` for every pair."""

from __future__ import annotations

import asyncio
import operator
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from utuple.cluster.line import Line
from utuple.errors import OutcomeUnknown
from utuple.model.columns import Columns, columns_of
from utuple.model.condition import Equal
from utuple.model.match import matches
from utuple.model.utuple import Exact, Family, Kind, Template, UTuple
from utuple.model.value import decode_data, encode_data
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire
from utuple.wire.codec import (
    columns_from_wire,
    columns_to_wire,
    epochs_from_wire,
    pack,
    said_in,
    template_from_wire,
    templates_from_wire,
    unpack,
)


@dataclass(eq=False)
class Cursor:
    stream: TwinStream
    after: dict[str, int]
    """By origin."""
    window: int
    stored_upto: int
    outstanding: int = 0
    generation: int = 0


class TwinStream:
    def __init__(self, server: TwinServer | TwinSca) -> None:
        self._server = server
        self._queue: asyncio.Queue[pb.ToReader | None] = asyncio.Queue()
        self._broken = False
        server.streams.append(self)

    def put(self, message: pb.ToReader) -> None:
        asyncio.get_running_loop().call_soon(self._queue.put_nowait, message)

    def break_off(self) -> None:
        self._broken = True
        if self in self._server.streams:
            self._server.streams.remove(self)
            self._server.gone(self)
        asyncio.get_running_loop().call_soon(self._queue.put_nowait, None)

    async def send(self, message: pb.FromReader) -> None:
        await asyncio.sleep(0)
        if self._broken:
            raise OutcomeUnknown("the stream has ended")
        for one in said_in(message):
            self._server.hear(self, one)

    async def receive_all(self, handle: Callable[[pb.ToReader], None]) -> None:
        while (message := await self._queue.get()) is not None:
            handle(message)
        raise OutcomeUnknown("the stream broke")

    def cancel(self) -> None:
        self.break_off()


def _attached(attach: pb.Attach, *, unknown: bool) -> pb.ToReader:
    attached = pb.Attached(id=attach.id, unknown=unknown, generation=attach.generation)
    return pb.ToReader(attached=attached)


def _detached(detach: pb.Detach) -> pb.ToReader:
    return pb.ToReader(detached=pb.Detached(id=detach.id, generation=detach.generation))


def _replaced(id_: bytes, by: int) -> pb.ToReader:
    return pb.ToReader(replaced=pb.Replaced(id=id_, generation=by))


class _Delivers:
    """What both kinds of server do for devices."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.streams: list[TwinStream] = []
        self.heard: list[pb.FromReader] = []
        self.devices: dict[bytes, UTuple] = {}
        self.commands: dict[bytes, tuple[int, UTuple]] = {}
        """CAs that are kept, with their seqs."""
        self.acknowledged: dict[tuple[bytes, str], int] = {}
        self.device_streams: dict[bytes, TwinStream] = {}
        self.generations: dict[bytes, int] = {}
        """Of the devices that are attached."""
        self.confirmed: set[tuple[bytes, bytes]] = set()
        self.silent = False
        """Sends no command on: devices never confirm."""

    def keep(self, message: pb.Columns) -> None:
        columns, _ = columns_from_wire(message)
        for row in range(len(columns)):
            device = columns.utuple_at(row, Kind.CF)
            self.devices[device.id] = device

    def attach_device(self, stream: TwinStream, attach: pb.Attach) -> None:
        if attach.HasField("registration"):
            self.keep(attach.registration)
        device, held = self.devices.get(attach.id), self.device_streams.get(attach.id)
        if held is not None and self._is_late(stream, attach, self.generations[attach.id]):
            return
        if held is not None and held is not stream:
            held.put(_replaced(attach.id, attach.generation))
        stream.put(_attached(attach, unknown=device is None))
        if device is None:
            return
        self.device_streams[attach.id] = stream
        self.generations[attach.id] = attach.generation
        after = self.acknowledged.get((attach.id, self.name), 0)
        if attach.resume:
            after = max((p.seq for p in attach.positions if p.origin == self.name), default=0)
        for seq, command in self.commands.values():
            if seq > after and matches(command, device):
                self._give(stream, device, command.id, encode_data(command.data or {}), seq)

    def _is_late(self, stream: TwinStream, attach: pb.Attach, held: int) -> bool:
        if attach.generation < held:
            stream.put(_replaced(attach.id, held))
        return attach.generation < held

    def detach_device(self, stream: TwinStream, detach: pb.Detach) -> None:
        held = self.device_streams.get(detach.id)
        if held in (None, stream) and self.generations.get(detach.id) == detach.generation:
            self.device_streams.pop(detach.id, None)
            if detach.cancel:
                self.devices.pop(detach.id, None)

    def _give(
        self, stream: TwinStream, device: UTuple, id_: bytes, payload: bytes, seq: int
    ) -> None:
        columns = pb.Columns(ids=id_, times_us=pack(array("q", [7])), payloads=[payload])
        seqs = pack(array("Q", [seq])) if seq else b""
        deliveries = pb.Deliveries(formals=device.id, columns=columns, seqs=seqs)
        stream.put(pb.ToReader(deliveries=deliveries))

    async def hand_to(
        self, device: UTuple, id_: bytes, payload: bytes, seq: int = 0
    ) -> pb.Handover:
        stream = self.device_streams.get(device.id)
        handed: pb.Handed.ValueType = pb.NOT_CONNECTED
        if stream is not None:
            handed = pb.NOT_CONFIRMED
            if not self.silent:
                self._give(stream, device, id_, payload, seq)
                for _ in range(20):
                    await asyncio.sleep(0)
                if (device.id, id_) in self.confirmed:
                    handed = pb.HANDED_OVER
        assert isinstance(device.metadata, Exact)
        return pb.Handover(id=device.id, address=device.metadata.address, handed=handed)

    def confirm(self, message: pb.Confirm) -> None:
        for at in range(0, len(message.formals), 16):
            self.confirmed.add((message.formals[at : at + 16], message.commands[at : at + 16]))

    def gone(self, stream: TwinStream) -> None:
        held = [id_ for id_, other in self.device_streams.items() if other is stream]
        for id_ in held:
            del self.device_streams[id_]


class TwinSca(_Delivers):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls = 0

    def hear(self, stream: TwinStream, message: pb.FromReader) -> None:
        self.heard.append(message)
        match message.WhichOneof("message"):
            case "attach":
                self.attach_device(stream, message.attach)
            case "confirm":
                self.confirm(message.confirm)
            case "detach":
                self.detach_device(stream, message.detach)
                stream.put(_detached(message.detach))

    async def hand(
        self, family: pb.Family, id_: bytes, address: str, payload: bytes
    ) -> list[pb.Handover]:
        command = UTuple(
            id_,
            Family(family.subject, family.type),
            Template(address=Equal(address)),
            decode_data(payload),
            None,
            0,
        )
        met = [device for device in self.devices.values() if matches(command, device)]
        return [await self.hand_to(device, id_, payload) for device in met]


class TwinServer(_Delivers):
    def __init__(self, name: str, line: Line | None) -> None:
        super().__init__(name)
        self.line = line
        """None: it has not heard that it serves anything."""
        self.seq = 0
        self.log: list[tuple[int, UTuple, str]] = []
        """seq, EA, origin"""
        self.templates: dict[bytes, UTuple] = {}
        self.cursors: dict[bytes, Cursor] = {}
        self.receipts_most = 1_000
        """Devices of a command in one answer."""
        self.reads = 0
        self.page_rows: list[int] = []
        self.sent: Counter[str] = Counter()
        """Deliveries, by origin."""

    # --- registering ---------------------------------------------------------------------------

    def register(self, request: pb.RegisterRequest) -> pb.RegisterAnswer:
        answer = pb.RegisterAnswer()
        self._events(request, answer)
        devices, epochs = columns_from_wire(request.devices)
        stale = self._stale(devices, epochs)
        if stale:
            self._refuse(answer, pb.DEVICES, stale)
        else:
            self.keep(request.devices)
        routed = epochs_from_wire(request.templates)
        for row, half in enumerate(templates_from_wire(request.templates)):
            reason = self._reason(routed[half.family])
            if reason:
                self._refuse(answer, pb.TEMPLATES, {reason: [row]})
            else:
                self.templates[half.id] = half.utuple
        return answer

    def _events(self, request: pb.RegisterRequest, answer: pb.RegisterAnswer) -> None:
        columns, epochs = columns_from_wire(request.events)
        stale = self._stale(columns, epochs)
        self._refuse(answer, pb.EVENTS, stale)
        refused = {row for rows in stale.values() for row in rows}
        known = {event.id for _, event, _ in self.log} if request.retry else set()
        for row in range(len(columns)):
            event = columns.utuple_at(row)
            if row in refused or event.id in known:
                continue
            self.add(event)

    def add(self, event: UTuple) -> None:
        self.seq += 1
        if event.lifetime_s > 0:
            self.log.append((self.seq, event, self.name))
        else:
            self._deliver_transient(event)
        for id_ in list(self.cursors):
            self._pump(id_)

    def _stale(
        self, columns: Columns, epochs: dict[Family, int]
    ) -> dict[pb.Reason.ValueType, list[int]]:
        found: dict[pb.Reason.ValueType, list[int]] = {}
        for row, number in enumerate(columns.family):
            reason = self._reason(epochs[columns.families[number]], accumulates=True)
            if reason:
                found.setdefault(reason, []).append(row)
        return found

    def _reason(self, epoch: int, *, accumulates: bool = False) -> pb.Reason.ValueType:
        member = self.line.member(self.name) if self.line is not None else None
        if self.line is None or member is None or member.suspended:
            return pb.NOT_SERVED
        if epoch != self.line.epoch:
            return pb.STALE
        return pb.OFF if accumulates and not member.accumulatable else pb.REASON_UNKNOWN

    def _refuse(
        self,
        answer: pb.RegisterAnswer | pb.CommandAnswer | pb.ReadChunk,
        part: pb.Part.ValueType,
        rows: dict[pb.Reason.ValueType, list[int]],
    ) -> None:
        for reason, refused in rows.items():
            answer.refusals.add(part=part, reason=reason, rows=refused)
            if self.line is not None:
                answer.lines.append(line_to_wire(self.line))

    # --- reading and commanding ----------------------------------------------------------------

    def read(self, request: pb.ReadRequest) -> Iterator[pb.ReadChunk]:
        self.reads += 1
        first = pb.ReadChunk()
        half, epoch = template_from_wire(request.template)
        wanted, reason = half.utuple, self._reason(epoch)
        if reason:
            self._refuse(first, pb.TEMPLATES, {reason: [0]})
            yield first
            return
        yield first
        if request.HasField("page"):
            yield from self._page(request.page, wanted)
            return
        at = 0
        while at < len(self.log):  # what goes while it is read is not found any more
            _, event, _ = self.log[at]
            at += 1
            if matches(event, wanted):
                yield pb.ReadChunk(columns=columns_to_wire(columns_of([event])))

    def _page(self, page: pb.Page, wanted: UTuple) -> Iterator[pb.ReadChunk]:
        self.page_rows.append(page.rows)
        found = [event for _, event, _ in self.log if matches(event, wanted)]
        found.sort(key=time_and_id, reverse=page.newest_first)
        after = page.after_us, page.after_id
        if page.after_id:
            is_after = operator.lt if page.newest_first else operator.gt
            found = [event for event in found if is_after(time_and_id(event), after)]
        for event in found[: page.rows]:
            yield pb.ReadChunk(columns=columns_to_wire(columns_of([event])))

    async def command(self, request: pb.CommandRequest) -> pb.CommandAnswer:
        answer = pb.CommandAnswer()
        half, epoch = template_from_wire(request.command)
        reason = self._reason(epoch)
        if reason:
            self._refuse(answer, pb.TEMPLATES, {reason: [0]})
            return answer
        command = half.utuple
        self.seq += 1
        seq, payload = self.seq, half.payload
        if command.lifetime_s > 0:
            seq, _ = self.commands.setdefault(command.id, (seq, command))
        met = sorted((d for d in self.devices.values() if matches(command, d)), key=lambda d: d.id)
        for device in [d for d in met if d.id > request.after]:
            if len(answer.devices) == self.receipts_most:
                answer.more = True
                break
            answer.devices.append(await self.hand_to(device, command.id, payload, seq))
        return answer

    # --- delivering ----------------------------------------------------------------------------

    def hear(self, stream: TwinStream, message: pb.FromReader) -> None:
        self.heard.append(message)
        match message.WhichOneof("message"):
            case "attach":
                self._attach(stream, message.attach)
            case "taken":
                cursor = self.cursors.get(message.taken.id)
                if cursor is not None and cursor.generation == message.taken.generation:
                    cursor.outstanding = max(0, cursor.outstanding - message.taken.count)
                    self._pump(message.taken.id)
            case "acknowledge":
                said = message.acknowledge
                for number, seq in enumerate(unpack("Q", said.seqs, len(said.seqs) // 8, "seqs")):
                    at = (said.formals[16 * number : 16 * (number + 1)], said.origin)
                    self.acknowledged[at] = max(seq, self.acknowledged.get(at, 0))
            case "detach":
                self._detach(stream, message.detach)
            case "confirm":
                self.confirm(message.confirm)

    def _attach(self, stream: TwinStream, attach: pb.Attach) -> None:
        if attach.device:
            self.attach_device(stream, attach)
            return
        held, unknown = self.cursors.get(attach.id), attach.id not in self.templates
        if held is not None and self._is_late(stream, attach, held.generation):
            return
        stream.put(_attached(attach, unknown=unknown))
        if unknown:
            return
        if held is not None and held.stream is not stream:
            held.stream.put(_replaced(attach.id, attach.generation))
        after = {
            origin: seq for (id_, origin), seq in self.acknowledged.items() if id_ == attach.id
        }
        if attach.resume:
            after |= {self.name: 0} | {p.origin: p.seq for p in attach.positions}
        self.cursors[attach.id] = Cursor(
            stream, after, attach.window, self.seq, generation=attach.generation
        )
        self._pump(attach.id)

    def _detach(self, stream: TwinStream, detach: pb.Detach) -> None:
        held = self.cursors.get(detach.id)
        if held is None or (held.stream, held.generation) == (stream, detach.generation):
            self.cursors.pop(detach.id, None)
            if detach.cancel:
                self.templates.pop(detach.id, None)
        self.detach_device(stream, detach)
        stream.put(_detached(detach))

    def _pump(self, id_: bytes) -> None:
        cursor = self.cursors[id_]
        for seq, event, origin in self.log:
            if seq <= cursor.after.get(origin, 0) or not matches(event, self.templates[id_]):
                continue
            if cursor.outstanding >= cursor.window:
                return
            cursor.after[origin] = seq
            cursor.outstanding += 1
            self.sent[origin] += 1
            stored = seq <= cursor.stored_upto or origin != self.name
            cursor.stream.put(pb.ToReader(deliveries=deliveries(id_, seq, event, origin, stored)))

    def _deliver_transient(self, event: UTuple) -> None:
        for id_, cursor in self.cursors.items():
            if matches(event, self.templates[id_]) and cursor.outstanding < cursor.window:
                message = deliveries(id_, self.seq, event, self.name, stored=False)
                cursor.stream.put(pb.ToReader(deliveries=message))

    def take_from(self, drained: TwinServer) -> None:
        """A drain is committed: its rows count here, and go there."""
        self.log += drained.log
        self.devices |= drained.devices
        for at, seq in drained.acknowledged.items():
            self.acknowledged[at] = max(seq, self.acknowledged.get(at, 0))
        drained.log, drained.devices = [], {}
        for id_, cursor in self.cursors.items():
            acknowledged = self.acknowledged.get((id_, drained.name), 0)
            cursor.after[drained.name] = max(cursor.after.get(drained.name, 0), acknowledged)
            self._pump(id_)

    def gone(self, stream: TwinStream) -> None:
        super().gone(stream)
        for id_ in [id_ for id_, cursor in self.cursors.items() if cursor.stream is stream]:
            del self.cursors[id_]


def time_and_id(event: UTuple) -> tuple[int, bytes]:
    assert isinstance(event.metadata, Exact)
    return event.metadata.time_us, event.id


def deliveries(id_: bytes, seq: int, event: UTuple, origin: str, stored: bool) -> pb.Deliveries:
    return pb.Deliveries(
        formals=id_,
        seqs=pack(array("Q", [seq])),
        origin=origin,
        stored=stored,
        columns=columns_to_wire(columns_of([event])),
    )
