"""Deliveries: what a watch, a read or a device hands to the application.

They arrive as chunks of columns and become objects one by one, as they are taken.
"""

from __future__ import annotations

from array import array
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import itemgetter
from struct import iter_unpack
from typing import Any, Protocol
from uuid import UUID

from utuple.errors import InvalidInput
from utuple.model.area import Position
from utuple.model.columns import Columns
from utuple.model.utuple import ID_BYTES, Exact, Family, UTuple, check_lifetime, datetime_of
from utuple.model.value import decode_all, decode_data
from utuple.model.weight import are_light, weight_bytes
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_from_wire, unpack

_NO_SEQS: array[int] = array("Q")
_BLOCK_BITS = 6
_BLOCK_ROWS = 1 << _BLOCK_BITS
_IN_BLOCK = _BLOCK_ROWS - 1
_BLOCK_BYTES = 64 << 10
"""Of payloads: what is larger is decoded one by one, as it is asked for."""


class Chunk:
    """Some deliveries from one server, of one origin; formals that came in one message share it. Each delivery
    has a place of its own, and those of one formal lie side by side, so that whatever is done for a formal is done
    with slices."""

    __slots__ = (
        *("_blocks", "_ids", "_is_light", "attempts", "columns", "devices", "origin"),
        *("rows", "seqs", "server", "stored"),
    )

    def __init__(
        self,
        columns: Columns,
        server: str,
        origin: str,
        *,
        stored: bool,
        seqs: Sequence[int] = (),
        rows: Sequence[int] | None = None,
        attempts: int = 0,
    ) -> None:
        """`seqs`: of each row; none for stored matches that were read and not streamed, and for simple commands.
        `rows`: of each place; None: each row once, in order."""
        self.columns = columns
        self.server = server
        self.origin = origin
        self.stored = stored
        self.attempts = attempts
        self.rows = range(len(columns)) if rows is None else rows
        self._ids: Sequence[bytes] | None = None
        self._is_light: bool | None = None
        self.seqs = list(seqs if rows is None or not seqs else _chosen(seqs, rows))
        self.devices: list[UTuple | None] = []
        """By place: whom a command came to. Commands travel as ids, times and payloads; the rest is the device's
        own, and empty for events."""
        self._blocks: list[list[dict[str, Any] | None] | None]
        self._blocks = [None] * (-(-len(self.rows) // _BLOCK_ROWS))
        """Data by block of places; None once it was handed out."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def ids(self) -> Sequence[bytes]:
        """By place, as are `seqs`. Made when they are first asked for."""
        if self._ids is None:
            ids = list(chain.from_iterable(iter_unpack(f"{ID_BYTES}s", self.columns.ids)))
            is_whole = isinstance(self.rows, range) and len(self.rows) == len(ids)
            self._ids = ids if is_whole else _chosen(ids, self.rows)
        return self._ids

    @property
    def is_light(self) -> bool:
        """All of it: asked once, though a thousand formals may share it."""
        if self._is_light is None:
            self._is_light = are_light(self.columns.payloads)
        return self._is_light

    def weight_bytes(self, places: Sequence[int]) -> int:
        """What these are in the windows of those who send them."""
        if self.is_light:
            return 0
        return weight_bytes(self.columns.payloads, [self.rows[place] for place in places])

    def family_at(self, place: int) -> Family:
        columns = self.columns
        device = self.devices[place] if self.devices else None
        return (
            columns.families[columns.family[self.rows[place]]] if device is None else device.family
        )

    def address_at(self, place: int) -> str:
        device = self._device_at(place)
        return self.columns.addresses[self.rows[place]] if device is None else device.address

    def position_at(self, place: int) -> Position | None:
        device = self._device_at(place)
        return self.columns.position_at(self.rows[place]) if device is None else device.position

    def _device_at(self, place: int) -> Exact | None:
        device = self.devices[place] if self.devices else None
        return device.metadata if device and isinstance(device.metadata, Exact) else None

    def part(self, places: Sequence[int]) -> Chunk:
        """Only these. What waits must not hold on to all that came with it."""
        columns, rows = self.columns, [self.rows[place] for place in places]
        if self.devices:  # commands are ids, times and payloads
            few = Columns(
                ids=b"".join([self.ids[place] for place in places]),
                times_us=array("q", [columns.times_us[row] for row in rows]),
                payloads=[columns.payloads[row] for row in rows],
            )
        else:
            few = columns.take(rows)
        seqs = [self.seqs[place] for place in places] if self.seqs else ()
        again = self.attempts
        own = Chunk(few, self.server, self.origin, stored=self.stored, seqs=seqs, attempts=again)
        own.devices = [self.devices[place] for place in places] if self.devices else []
        return own

    def data_at(self, place: int) -> dict[str, Any]:
        """The caller's own, once: what it does not keep is gone at once, and the garbage collector has nothing to
        look at. Who asks for one mostly asks for others, and many at once are decoded in half the time: so with the
        first its block is decoded, unless payloads are large."""
        number, at = place >> _BLOCK_BITS, place & _IN_BLOCK
        block = self._blocks[number]
        if block is None:
            first, payloads = number << _BLOCK_BITS, self.columns.payloads
            some = [payloads[row] for row in self.rows[first : first + _BLOCK_ROWS]]
            is_small = sum(map(len, some)) <= _BLOCK_BYTES
            block = self._blocks[number] = [*decode_all(some)] if is_small else [None] * len(some)
        data, block[at] = block[at], None
        return decode_data(self.columns.payloads[self.rows[place]]) if data is None else data


def _chosen(column: Sequence[Any], rows: Sequence[int]) -> Sequence[Any]:
    return itemgetter(*rows)(column) if len(rows) > 1 else [column[row] for row in rows]


class Settling(Protocol):
    """Who is told that a delivery is done, or with the seconds after which it may come again, that it is refused."""

    def acknowledge(self, chunk: Chunk, place: int, after_s: float | None = None, /) -> None: ...

    def check(self, chunk: Chunk, place: int, after_s: float | None = None, /) -> None:
        """Raises what `acknowledge` would."""


class Unsettled:
    """Of deliveries there is nothing to say of, or nothing more."""

    def __init__(self, rule: str) -> None:
        self._rule = rule

    def check(self, chunk: Chunk, place: int, after_s: float | None = None, /) -> None:
        word = "ack" if after_s is None else "nack"
        raise InvalidInput(word, str(UUID(bytes=chunk.ids[place])), self._rule)

    acknowledge = check


READ = Unsettled("it came by a read: only what a watch or a device is given is acknowledged")
SETTLED = Unsettled("it was acknowledged or refused already")


class Delivered:
    """What a delivery holds, however it is acknowledged."""

    __slots__ = ("_by", "_chunk", "_data", "_place")

    def __init__(self, chunk: Chunk, place: int, by: Settling) -> None:
        self._chunk = chunk
        self._place = place
        self._by = by
        self._data: dict[str, Any] | None = None

    @property
    def id(self) -> UUID:
        """The uTuple's id: the same in every delivery of it."""
        return UUID(bytes=self._chunk.ids[self._place])

    @property
    def subject(self) -> str:
        """The kind of device."""
        return self._chunk.family_at(self._place).subject

    @property
    def type(self) -> str:
        """The kind of data."""
        return self._chunk.family_at(self._place).type

    @property
    def address(self) -> str:
        """An event's device; for a command, the device it came to."""
        return self._chunk.address_at(self._place)

    @property
    def time(self) -> datetime:
        """When it happened, in UTC: the `time` of `emit`; for a command, when it was sent."""
        return datetime_of(self._chunk.columns.times_us[self._chunk.rows[self._place]])

    @property
    def position(self) -> Position | None:
        """(latitude, longitude), if the event says where."""
        return self._chunk.position_at(self._place)

    @property
    def data(self) -> dict[str, Any]:
        """What it says: names and values."""
        data = self._data
        if data is None:
            data = self._data = self._chunk.data_at(self._place)
        return data

    @property
    def stored(self) -> bool:
        """Found in the store; False: it came live."""
        return self._chunk.stored

    @property
    def attempts(self) -> int:
        """To deliver it that failed before this one, where the watch has `ack_within_s`, `attempts` or `share`."""
        return self._chunk.attempts

    def _done(self, after_s: float | None = None) -> None:
        self._by.acknowledge(self._chunk, self._place, after_s)
        self._by = SETTLED

    def __repr__(self) -> str:
        place = "" if self.position is None else f" at {self.position}"
        how = "stored" if self.stored else "live"
        return (
            f"<{how} {self.subject}/{self.type} of {self.address!r}{place}, "
            f"{self.time.isoformat(timespec='milliseconds')}, {self.data}, id {self.id}>"
        )


class Delivery(Delivered):
    """One event of a watch or read, or one command to a device."""

    __slots__ = ()

    def ack(self) -> Coroutine[Any, Any, None]:
        """Done with it: a reader with a name, started again, is not given it again. Returns at once;
        the word travels in the background and is flushed when the watch closes. Once only, and before that: then it
        raises `InvalidInput`, or `Closed`, and what was not acknowledged comes again."""
        self._done()  # now, and not when it is awaited: an `await` that was forgotten must not mean a repeat
        return _nothing_more()

    def nack(self, after_s: float = 0.0) -> Coroutine[Any, Any, None]:
        """Not done: it comes again after so many seconds, to this program or another that shares the reader, until it was
        tried `attempts` times; then it is parked. Returns at once."""
        self._done(check_after(after_s))
        return _nothing_more()


def check_after(after_s: object) -> float:
    return check_lifetime(after_s, "after_s")


async def _nothing_more() -> None:
    """What is left to wait for when an acknowledgement has been noted."""


def chunks_of(
    server: str, message: pb.Deliveries, formals: Mapping[bytes, UTuple]
) -> Iterator[tuple[bytes, Chunk, range]]:
    """A message's deliveries, formal by formal, each with its places in a chunk: EFs share one, devices another.
    Formals that are not ours are left out."""
    formals_said = message.formals
    names = [formals_said[at : at + ID_BYTES] for at in range(0, len(formals_said), ID_BYTES)]
    size = len(message.columns.ids) // ID_BYTES
    seqs: array[int] = unpack("Q", message.seqs, size, "seqs") if message.seqs else _NO_SEQS
    rows, counts = _rows_of(message, size, len(names))

    def chunk(columns: Columns) -> Chunk:
        origin, chosen = message.origin or server, None if isinstance(rows, range) else rows
        stored, attempts = message.stored, message.attempts
        return Chunk(
            columns, server, origin, stored=stored, seqs=seqs, rows=chosen, attempts=attempts
        )

    events: Chunk | None = None
    commands: Chunk | None = None
    at = 0
    for name, count in zip(names, counts, strict=True):
        first, at = at, at + count
        formal = formals.get(name)
        if formal is None or not count:
            continue
        if isinstance(formal.metadata, Exact):
            if commands is None:
                commands = chunk(_commands(message.columns, size))
                commands.devices = [None] * len(rows)
            commands.devices[first:at] = [formal] * count
            yield name, commands, range(first, at)
            continue
        if events is None:
            events = chunk(columns_from_wire(message.columns)[0])
        yield name, events, range(first, at)


def _rows_of(
    message: pb.Deliveries, size: int, formals: int
) -> tuple[Sequence[int], Sequence[int]]:
    """The rows delivered, and how many of them are each formal's."""
    rows: Sequence[int] = range(size)
    if message.rows:
        rows = unpack("I", message.rows, len(message.rows) // 4, "rows")
        if max(rows) >= size:
            raise InvalidInput("rows", max(rows), f"must be below {size}")
    counts: Sequence[int] = [len(rows)] if formals == 1 else ()
    if message.counts:
        counts = unpack("I", message.counts, formals, "counts")
    if sum(counts) != len(rows) or len(counts) != formals:
        raise InvalidInput("counts", sum(counts), f"must be {len(rows)} in all")
    return rows, counts


def _commands(message: pb.Columns, size: int) -> Columns:
    times_us: array[int] = unpack("q", message.times_us, size, "times_us")
    payloads = list(message.payloads)
    if len(payloads) != size:
        raise InvalidInput("payloads", len(payloads), f"must be {size}, one a command")
    return Columns(ids=message.ids, times_us=times_us, payloads=payloads)
