"""Deliveries: what a watch, a read or a device hands to the application.

They arrive as chunks of columns and become objects one by one, as they are taken.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from utuple.client.arguments import datetime_of
from utuple.errors import InvalidInput
from utuple.model.area import Position
from utuple.model.columns import NO_POSITION, Columns
from utuple.model.utuple import ID_BYTES, Exact, Family, UTuple
from utuple.model.value import decode_all, decode_data
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_from_wire, unpack

_NO_SEQS: array[int] = array("Q")
_BLOCK_ROWS = 64
_BLOCK_BYTES = 64 << 10
"""Of payloads: what is larger is decoded one by one, as it is asked for."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some deliveries from one server, of one origin; formals that came in one message share it."""

    columns: Columns
    server: str
    origin: str
    stored: bool
    seqs: Sequence[int] = field(default_factory=lambda: _NO_SEQS)
    """Empty for stored matches that were read and not streamed, and for simple commands."""
    _decoded: dict[int, list[dict[str, Any] | None]] = field(default_factory=dict)
    """Data by block, of those whose payloads are small; None once it was handed out."""

    def data_at(self, row: int) -> dict[str, Any]:
        """The caller's own. Who asks for one mostly asks for others, and many at once are decoded in half the
        time: so with the first its block is decoded."""
        block, at = divmod(row, _BLOCK_ROWS)
        decoded = self._decoded.get(block)
        if decoded is None:
            some = self.columns.payloads[block * _BLOCK_ROWS : (block + 1) * _BLOCK_ROWS]
            is_small = sum(map(len, some)) <= _BLOCK_BYTES
            decoded = self._decoded[block] = [*decode_all(some)] if is_small else [None] * len(some)
        data, decoded[at] = decoded[at], None
        return decode_data(self.columns.payloads[row]) if data is None else data


Acknowledge = Callable[[Chunk, int], None]
"""Called with the chunk and the row in it, once per delivery."""


class Delivered:
    """What a delivery holds, however it is acknowledged."""

    __slots__ = ("_acknowledge", "_chunk", "_data", "_row")

    def __init__(self, chunk: Chunk, row: int, acknowledge: Acknowledge | None) -> None:
        self._chunk = chunk
        self._row = row
        self._data: dict[str, Any] | None = None
        self._acknowledge = acknowledge

    @property
    def id(self) -> UUID:
        """The uTuple's id: the same in every delivery of it."""
        return UUID(bytes=self._chunk.columns.id_at(self._row))

    @property
    def subject(self) -> str:
        columns = self._chunk.columns
        return columns.families[columns.family[self._row]].subject

    @property
    def type(self) -> str:
        columns = self._chunk.columns
        return columns.families[columns.family[self._row]].type

    @property
    def address(self) -> str:
        """An event's device; for a command, the device it came to."""
        return self._chunk.columns.addresses[self._row]

    @property
    def time(self) -> datetime:
        return datetime_of(self._chunk.columns.times_us[self._row])

    @property
    def position(self) -> Position | None:
        """(latitude, longitude), if the event says where."""
        return self._chunk.columns.position_at(self._row)

    @property
    def data(self) -> dict[str, Any]:
        if self._data is None:
            self._data = self._chunk.data_at(self._row)
        return self._data

    @property
    def stored(self) -> bool:
        """Found in the store; False: it came live."""
        return self._chunk.stored

    def _done(self) -> None:
        acknowledge, self._acknowledge = self._acknowledge, None
        if acknowledge is not None:
            acknowledge(self._chunk, self._row)

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

    async def ack(self) -> None:
        """Done with it: a reader with a name, started again, is not given it again. Returns at once;
        the word travels in the background and is flushed when the watch closes."""
        acknowledge, self._acknowledge = self._acknowledge, None
        if acknowledge is not None:
            acknowledge(self._chunk, self._row)


def chunks_of(
    server: str, message: pb.Deliveries, formals: Mapping[bytes, UTuple]
) -> Iterator[tuple[bytes, Chunk, Sequence[int]]]:
    """A message's deliveries, formal by formal, each with its rows of a chunk: EFs share one, devices have their
    own. Formals that are not ours are left out."""
    names = [message.formals[at : at + ID_BYTES] for at in range(0, len(message.formals), ID_BYTES)]
    size = len(message.columns.ids) // ID_BYTES
    seqs: array[int] = unpack("Q", message.seqs, size, "seqs") if message.seqs else _NO_SEQS
    rows, counts = _rows_of(message, size, len(names))

    def chunk(columns: Columns, own_seqs: Sequence[int]) -> Chunk:
        return Chunk(columns, server, message.origin or server, message.stored, own_seqs)

    shared: Chunk | None = None
    commands: _Commands | None = None
    at = 0
    for name, count in zip(names, counts, strict=True):
        own = rows[at : at + count]
        at += count
        formal = formals.get(name)
        if formal is None or not own:
            continue
        if isinstance(formal.metadata, Exact):
            if commands is None:
                commands = _Commands(message.columns, size)
            own_seqs = array("Q", [seqs[row] for row in own]) if seqs else seqs
            columns = commands.columns(own, formal.family, formal.metadata)
            yield name, chunk(columns, own_seqs), range(len(own))
            continue
        if shared is None:
            shared = chunk(columns_from_wire(message.columns)[0], seqs)
        yield name, shared, own


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


class _Commands:
    """Commands travel as ids, times and payloads; the rest is the device's own, so each device gets columns
    of its own: of its own rows only, since a message may be for thousands of devices."""

    def __init__(self, message: pb.Columns, size: int) -> None:
        self._ids = message.ids
        self._times_us: array[int] = unpack("q", message.times_us, size, "times_us")
        self._payloads = list(message.payloads)
        if len(self._payloads) != size:
            raise InvalidInput("payloads", len(self._payloads), f"must be {size}, one a command")

    def columns(self, own: Sequence[int], family: Family, device: Exact) -> Columns:
        rows = len(own)
        lat, lon = device.position or (NO_POSITION, NO_POSITION)
        return Columns(
            families=(family,),
            family=array("I", bytes(4 * rows)),
            ids=b"".join([self._ids[ID_BYTES * row : ID_BYTES * (row + 1)] for row in own]),
            times_us=array("q", [self._times_us[row] for row in own]),
            lats=array("d", [lat]) * rows,
            lons=array("d", [lon]) * rows,
            lifetimes_us=array("q", bytes(8 * rows)),
            addresses=[device.address] * rows,
            payloads=[self._payloads[row] for row in own],
        )
