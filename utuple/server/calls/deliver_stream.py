"""One reader's stream: its messages to `Dispatcher`, and what `Dispatcher` puts out, as messages."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from utuple.delivery.notice import Notice
from utuple.errors import InvalidInput, NotAllowed
from utuple.model.columns import Columns
from utuple.model.identity import time_of_id_us
from utuple.model.limits import MAX_LIFETIME_S
from utuple.model.utuple import ID_BYTES, Family, check_id
from utuple.model.value import check_name
from utuple.runtime.clock import monotonic_s
from utuple.security.identity import Identity
from utuple.server.delivering.absent.absences import Absence
from utuple.server.delivering.cursor import Sending
from utuple.server.delivering.dispatcher import Dispatcher
from utuple.server.delivering.outbox import CommandSending, DropNotice, LineNews, Outgoing
from utuple.store.contract import NO_SEQ, OWN_ORIGIN
from utuple.transport.duplex import MessageSink
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import line_to_wire, server_to_wire
from utuple.wire.codec import (
    MAX_POSITIONS,
    pack,
    refuse_unknown,
    said_in,
    unpack,
    write_columns,
)
from utuple.wire.deliveries import confirmed_from_wire, notice_to_wire
from utuple.wire.pieces import pieces

_MAX_SEQ = (1 << 63) - 1
"""What a store can keep."""


NoteDelivered = Callable[[Collection[Family], bool, float], None]
"""Of these families, stored or live, and since when it was under way."""


class DeliverStream:
    """A reader's messages are carried out one after another; some of them wait for the store.

    What is put into its outbox is written in the same turn of the event loop as long as the wire has room, because live
    deliveries have waited for their commit already. When the wire has none, what follows stays in the outbox, where
    the cursors' limits bound it, until the wire calls `_flush` again."""

    def __init__(
        self,
        delivering: Dispatcher,
        name: str,
        sink: MessageSink,
        caller: Identity | None = None,
        note: NoteDelivered = lambda *_: None,
    ) -> None:
        """`note` is told what was written, and since when."""
        self._note = note
        self._delivering = delivering
        self._name = name
        self._sink = sink
        self._stream, self._outbox = delivering.open_stream(self._flush, caller)
        self._item: Outgoing | None = None
        self._pieces: Iterator[pb.ToReader] = iter(())
        """Messages of the item that is being written."""
        sink.when_writable(self._flush)

    async def serve(self, messages: AsyncIterator[pb.FromReader]) -> None:
        """Until the reader goes, or with the error its message caused."""
        try:
            async for message in messages:
                for one in said_in(message):
                    await self._handle(one)
            while not self._is_idle and await self._sink.drained():
                self._flush()  # an orderly goodbye gets what was queued
        finally:
            self._delivering.close_stream(self._stream)

    @property
    def _is_idle(self) -> bool:
        return self._item is None and self._outbox.is_empty

    def _flush(self) -> None:
        """Write while there is room. An item is counted as written when its last message is on the wire."""
        began_s = monotonic_s()
        while self._sink.is_writable:
            message = next(self._pieces, None)
            if message is not None:
                self._sink.send(message)
                continue
            if self._item is not None:
                item, self._item = self._item, None
                self._note_written(item, began_s)
                began_s = monotonic_s()
                self._delivering.written(self._stream, *_counted(item))
            self._item = self._outbox.pop()
            if self._item is None:
                return
            self._pieces = to_reader(self._item, self._name)

    def _note_written(self, item: Outgoing, began_s: float) -> None:
        if isinstance(item, Sending):
            self._note(item.batch.columns.families, item.stored, began_s)
        elif isinstance(item, CommandSending):
            self._note([item.family], False, began_s)

    async def _handle(self, message: pb.FromReader) -> None:
        delivering = self._delivering
        match message.WhichOneof("message"):
            case "attach":
                await self._attach(message.attach)
            case "taken":
                taken = message.taken
                counts = (taken.count, taken.generation, taken.weight_bytes)
                if self._is_own(taken.id):
                    self._paced(taken)
                delivering.taken(self._stream, taken.id, *counts)
            case "acknowledge":
                self._acknowledge(message.acknowledge)
            case "detach":
                detach = message.detach
                if self._is_own(detach.id):
                    self._paced(detach)
                delivering.detach(
                    self._stream, detach.id, cancel=detach.cancel, generation=detach.generation
                )
            case "settle":
                self._settle(message.settle)
            case "heard_dropped":
                heard = message.heard_dropped
                refuse_unknown(heard, "heard_dropped")
                if self._is_own(heard.id):
                    delivering.away.heard(heard.id, self._origin(heard.origin), heard.after)
            case "confirm":
                for formal, command in zip(*confirmed_from_wire(message.confirm), strict=True):
                    if self._is_own(formal):
                        delivering.commands.confirm(formal, command)
            case None:
                raise InvalidInput("message", "nothing", "is one of attach, taken, acknowledge, …")

    def _settle(self, settle: pb.Settle) -> None:
        refuse_unknown(settle, "settle")
        done, refused = (unpack("Q", s, len(s) // 8, name) for name, s in _settled_in(settle))
        if not 0 <= settle.after_s <= MAX_LIFETIME_S:
            raise InvalidInput(
                "after_s", settle.after_s, f"must lie between 0 and {MAX_LIFETIME_S}"
            )
        origin = self._origin(settle.origin)
        self._delivering.seats.settle(
            self._stream, check_id(settle.id), origin, done, refused, settle.after_s
        )

    def _paced(self, message: pb.Taken | pb.Detach) -> None:
        if message.HasField("pace"):
            pace = message.pace
            refuse_unknown(pace, "pace")
            rates = (pace.others_per_s, pace.service_per_s)
            for field, rate in zip(("others_per_s", "service_per_s"), rates, strict=True):
                if not 0 <= rate < inf:
                    raise InvalidInput(field, rate, "must be 0 or more, and finite")
            self._delivering.away.told(message.id, *rates)

    async def _attach(self, attach: pb.Attach) -> None:
        check_id(attach.id)
        after = self._positions(attach.positions) if attach.resume else {}
        if attach.device:
            own = after.get(OWN_ORIGIN)
            windows = (attach.window_bytes, attach.attempt)
            await self._delivering.attach_device(
                self._stream, attach.id, attach.window, own, attach.generation, *windows
            )
        else:
            asked = (attach.window, after, attach.generation, attach.window_bytes, attach.attempt)
            self._delivering.attach(self._stream, attach.id, *asked)

    def _positions(self, positions: Collection[pb.Position]) -> dict[str, int]:
        """By origin, this server's own under OWN_ORIGIN."""
        if len(positions) > MAX_POSITIONS:
            raise InvalidInput("positions", len(positions), f"at most {MAX_POSITIONS}")
        found: dict[str, int] = {}
        for position in positions:
            origin, seq = self._origin(position.origin), _checked(position.seq)
            found[origin] = max(seq, found.get(origin, 0))
        return found

    def _origin(self, said: str) -> str:
        own = said in (OWN_ORIGIN, self._name)
        return OWN_ORIGIN if own else check_name("origin", said)

    def _acknowledge(self, message: pb.Acknowledge) -> None:
        refuse_unknown(message, "acknowledge")
        formals = message.formals
        count = len(formals) // ID_BYTES
        if len(formals) % ID_BYTES or count > MAX_POSITIONS:
            rule = f"must be 16 bytes each, of at most {MAX_POSITIONS}"
            raise InvalidInput("formals", f"{len(formals)} bytes", rule)
        seqs = unpack("Q", message.seqs, count, "seqs")
        _checked(max(seqs, default=0))
        origin, acknowledge = self._origin(message.origin), self._delivering.acknowledge
        for at, seq in enumerate(seqs):
            formal = formals[at * ID_BYTES : (at + 1) * ID_BYTES]
            if self._is_own(formal):
                acknowledge(formal, origin, seq)

    def _is_own(self, formal: bytes) -> bool:
        """A reader's name belongs to the identity that made it, and so does what is said of its formals. Raises NotAllowed. A CF
        whose program is attached is in memory: of one that is not, nobody who is known here can have anything to say."""
        verdict = self._delivering.may_speak_of(self._stream, formal)
        if verdict is not None and not verdict.is_allowed:
            raise NotAllowed(verdict.reason)
        return verdict is not None


def _settled_in(settle: pb.Settle) -> Iterator[tuple[str, bytes]]:
    for name, said in (("done", settle.done), ("refused", settle.refused)):
        if len(said) % 8 or len(said) > MAX_POSITIONS * 8:
            raise InvalidInput(
                name, f"{len(said)} bytes", f"must be 8 each, of at most {MAX_POSITIONS}"
            )
        yield name, said


def _checked(seq: int) -> int:
    if seq > _MAX_SEQ:
        raise InvalidInput("seq", seq, f"at most {_MAX_SEQ}")
    return seq


def _counted(item: Outgoing) -> tuple[int, int]:
    """The deliveries in it, and what they weigh."""
    if isinstance(item, Sending):
        return len(item.rows), item.weight_bytes
    return int(isinstance(item, CommandSending)), 0


def to_reader(item: Outgoing, name: str) -> Iterator[pb.ToReader]:
    """As messages of the server of this name, which is the origin of what was not brought here."""
    match item:
        case Notice():
            yield notice_to_wire(item)
        case LineNews(lines, servers):
            changed = pb.Changed(
                lines=map(line_to_wire, lines), servers=map(server_to_wire, servers)
            )
            yield pb.ToReader(changed=changed)
        case DropNotice(absence):
            yield pb.ToReader(dropped=_dropped(absence, name))
        case CommandSending():
            yield pb.ToReader(deliveries=_command(item, name))
        case Sending():
            for first, last in pieces(item.batch.columns, item.rows):
                message = pb.ToReader()
                piece, origin = _cut(item, first, last), item.batch.origin or name
                _write_deliveries(message.deliveries, piece, origin)
                yield message


def _dropped(absence: Absence, name: str) -> pb.Dropped:
    decision = absence.decision
    assert decision is not None and absence.upto is not None
    return pb.Dropped(
        id=absence.formal,
        origin=absence.origin or name,
        after=absence.after,
        upto=absence.upto,
        count=decision.dropped,
        policy=str(absence.policy),
        zeta=absence.zeta,
        began_us=absence.began_us,
        ended_us=absence.ended_us,
        first_us=decision.first_us,
        last_us=decision.last_us,
    )


def _cut(item: Sending, first: int, last: int) -> Sending:
    """The deliveries first to last of it."""
    if last - first == len(item.rows):
        return item
    formals, counts = [], []
    at = 0
    for formal, count in zip(item.formals, item.counts, strict=True):
        own = min(at + count, last) - max(at, first)
        if own > 0:
            formals.append(formal)
            counts.append(own)
        at += count
    return replace(item, rows=item.rows[first:last], formals=formals, counts=counts)


def _write_deliveries(message: pb.Deliveries, item: Sending, origin: str) -> None:
    """Each row once, however many formals it is for; all of a batch goes out as it came in."""
    columns, seqs, rows = item.batch.columns, item.batch.seqs, b""
    if len(item.formals) > 1 or len(item.rows) < len(columns):  # else it is all of them, ascending
        columns, seqs, rows = _chosen(item)
    message.formals = b"".join(item.formals)
    message.counts = pack(array("I", item.counts)) if len(item.formals) > 1 else b""
    message.rows = rows
    message.seqs = b"" if item.batch.is_fleeting else pack(seqs)
    message.origin = origin
    message.stored = item.stored
    message.attempts = item.attempts
    write_columns(message.columns, columns)


def _chosen(item: Sending) -> tuple[Columns, array[int], bytes]:
    """The rows that are for someone, and which of them are for whom; nothing if each is for one, in their order."""
    columns, seqs = item.batch.columns, item.batch.seqs
    rows = np.asarray(item.rows, np.int64)
    used = np.zeros(len(columns), np.bool_)
    used[rows] = True
    if not used.all():
        chosen = np.flatnonzero(used).tolist()
        rows = (np.cumsum(used) - 1)[rows]
        columns, seqs = columns.take(chosen), array("Q", [seqs[row] for row in chosen])
    in_order = len(rows) == len(columns) and bool((rows[1:] > rows[:-1]).all())
    return columns, seqs, b"" if in_order else rows.astype("<u4").tobytes()


def _command(item: CommandSending, origin: str) -> pb.Deliveries:
    return pb.Deliveries(
        formals=item.formal,
        seqs=pack(array("Q", [item.seq])) if item.seq != NO_SEQ else b"",
        origin=origin,
        stored=item.stored,
        columns=pb.Columns(
            families=[pb.Family(subject=item.family.subject, type=item.family.type)],
            ids=item.command,
            times_us=pack(array("q", [time_of_id_us(item.command)])),
            lifetimes_us=pack(array("q", [0])),
            addresses=[item.address],
            payloads=[item.payload],
        ),
    )
