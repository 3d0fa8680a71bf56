"""Stored matches of an EF: read at every member of one epoch, merged, repeats dropped.

A wait begins when the caller asks for the next row and ends within `timeout_s`: with rows, or as failed. What the caller
does between two waits is its own time.

When a member has to be read again and the line has changed, all members of the new one are read from the
beginning: rows may have gone from one to another meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, Protocol

from utuple.client.parts import Parts
from utuple.client.receiving.delivery import READ, Chunk, Delivery
from utuple.client.receiving.repeats import ENTRY_BYTES, Seen
from utuple.client.routing.every_member import FanOut
from utuple.client.routing.outcome import Behind, raise_refusals
from utuple.client.routing.retry import Tries
from utuple.client.routing.route import Target
from utuple.cluster.line import Line
from utuple.errors import NotRegistered, OutcomeUnknown, Unavailable, UTupleError
from utuple.model.key import key_of
from utuple.model.packed import packed
from utuple.model.utuple import UTuple
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import columns_from_wire, templates_to_wire

Batch = Sequence[Delivery]
"""Rows that came together; never none."""


class Unanswered:
    """The servers that are waited for, also after the wait was cut: to say who was silent then."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    @contextmanager
    def waiting_for(self, member: str) -> Iterator[None]:
        self._names.add(member)
        try:
            yield
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._names.discard(member)
            raise
        self._names.discard(member)

    def among(self, members: Sequence[str]) -> list[str]:
        return [name for name in members if name in self._names] or list(members)


class BatchSource(Protocol):
    key: int
    unanswered: Unanswered

    def batches(self) -> AsyncGenerator[Batch, None]: ...


@dataclass(frozen=True, slots=True)
class OpenRead:
    """A member's stored matches, accepted: the first chunk is there."""

    member: str
    first: pb.ReadChunk | None
    rest: AsyncGenerator[pb.ReadChunk, None]

    async def chunks(self) -> AsyncIterator[Chunk]:
        if self.first is not None:
            yield self._chunk(self.first)
        async for message in self.rest:
            yield self._chunk(message)

    async def close(self) -> None:
        await self.rest.aclose()

    def _chunk(self, message: pb.ReadChunk) -> Chunk:
        return Chunk(columns_from_wire(message.columns)[0], self.member, self.member, stored=True)


async def open_read(
    parts: Parts,
    wanted: UTuple,
    line: Line,
    member: str,
    *,
    page: pb.Page | None = None,
) -> OpenRead:
    """Raises Behind, or Unavailable, as late as any verb: nothing is registered by reading."""
    once = packed(wanted)._replace(lifetime_s=0.0)
    asked = templates_to_wire([once], epochs={wanted.family: line.epoch})
    request = pb.ReadRequest(template=asked, page=page)
    chunks = parts.transport.read(parts.lines.address_of(member), request)
    try:
        async with asyncio.timeout_at(parts.tries().deadline_s):
            first = await anext(chunks, None)
        if first is not None:
            parts.lines.hear(first.lines, first.servers)
            if first.refusals:
                raise_refusals(list(first.refusals))
    except BaseException as error:
        await chunks.aclose()
        if isinstance(error, TimeoutError):
            raise Unavailable(f"{member} does not answer in time") from None
        if isinstance(error, OutcomeUnknown):
            why = str(error) or "its time is over"  # a TimeoutError has no text
            raise Unavailable(f"{member} does not answer: {why}") from None
        raise
    return OpenRead(member, first, chunks)


def has_left(parts: Parts, key: int, member: str, line: Line) -> bool:
    """It was in this line, and is not in the one that is known by now."""
    known = parts.lines.known(key)
    return known is not None and known.epoch > line.epoch and known.member(member) is None


class Reading:
    """One `read`, in the order in which servers give."""

    def __init__(self, parts: Parts, wanted: UTuple) -> None:
        self._parts = parts
        self._wanted = wanted
        self.key = key_of(*wanted.family)
        self.unanswered = Unanswered()
        self._pumps: list[asyncio.Task[None]] = []
        self._closing: list[asyncio.Task[None]] = []

    @cached_property
    def _queue(self) -> asyncio.Queue[Chunk | UTupleError | Behind | None]:
        return asyncio.Queue(self._parts.config.read_ahead_chunks)

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Nothing is given before every member has accepted, so that an old line costs no repeats."""
        seen = Seen(self._parts.config.seen_ids * ENTRY_BYTES)
        number, is_behind = seen.enter(), True
        try:
            while is_behind:
                is_behind = False
                line, opened = await self._open()
                async with aclosing(self._chunks(opened, line)) as chunks:
                    try:
                        async for chunk in chunks:
                            new = seen.add_all(number, chunk.ids)
                            places = range(len(chunk)) if new is None else new
                            if places:
                                yield batch_of(chunk, places)
                    except Behind:
                        is_behind = True
        finally:
            await self._stop()

    async def _open(self) -> tuple[Line, list[OpenRead]]:
        parts = self._parts
        fan_out: FanOut[OpenRead] = parts.fan_out(self._wanted, registers=False)
        line, opened = await fan_out.run(self.key, self._open_at, parts.tries(), self._discard)
        return line, list(opened.values())

    def _chunks(self, opened: list[OpenRead], line: Line) -> AsyncGenerator[Chunk, None]:
        """Of one member as they come; of several as each has some."""
        if len(opened) == 1:
            return self._chunks_of(opened[0], line)
        return self._merged(opened, line)

    async def _merged(self, opened: list[OpenRead], line: Line) -> AsyncGenerator[Chunk, None]:
        self._pumps += [asyncio.create_task(self._pump(one, line)) for one in opened]
        try:
            ended = 0
            while ended < len(self._pumps):
                got = await self._queue.get()
                if isinstance(got, Chunk):
                    yield got
                elif got is None:
                    ended += 1
                else:
                    raise got
        finally:
            await self._stop()

    async def _open_at(self, target: Target, line: Line, retry: bool) -> OpenRead:
        with self.unanswered.waiting_for(target.member):
            return await open_read(self._parts, self._wanted, line, target.member)

    def _discard(self, opened: OpenRead) -> None:
        self._closing.append(asyncio.create_task(opened.close()))

    async def _pump(self, opened: OpenRead, line: Line) -> None:
        """A member's chunks into the queue, and at the end why it ended."""
        end: UTupleError | Behind | None = None
        try:
            with self.unanswered.waiting_for(opened.member):
                async with aclosing(self._chunks_of(opened, line)) as chunks:
                    async for chunk in chunks:
                        await self._queue.put(chunk)
        except (UTupleError, Behind) as error:
            end = error
        except Exception:
            await self._queue.put(Unavailable("a bug in this client ended the reading"))
            raise
        await self._queue.put(end)

    async def _chunks_of(self, opened: OpenRead, line: Line) -> AsyncGenerator[Chunk, None]:
        """A stream that breaks is read again from its beginning, as long as it comes further. One whose
        server has left the line meanwhile may have ended early: what was not read yet is elsewhere."""
        tries, furthest = self._parts.tries(), 0
        while True:
            rows = 0
            try:
                async for chunk in opened.chunks():
                    yield chunk
                    rows += len(chunk.columns)
                    if rows > furthest:
                        tries, furthest = self._parts.tries(), rows
                if has_left(self._parts, self.key, opened.member, line):
                    raise Behind("it has left the line")
                return
            except (NotRegistered, OutcomeUnknown) as error:
                failure: UTupleError = error
            finally:
                await opened.close()
            opened, tries = await self._reopened(opened.member, line, failure, tries)

    async def _reopened(
        self, member: str, line: Line, failure: UTupleError, tries: Tries
    ) -> tuple[OpenRead, Tries]:
        lines = self._parts.lines
        while True:
            lines.refresh(self.key)
            unavailable = Unavailable(str(failure))
            tries = await self._parts.retrier.next_attempt(tries, unavailable, {}, registers=False)
            if lines.has_newer(self.key, line):
                raise Behind("the line has changed")
            try:
                return await open_read(self._parts, self._wanted, line, member), tries
            except NotRegistered as error:
                failure = error

    async def _stop(self) -> None:
        pumps, self._pumps = self._pumps, []
        for pump in pumps:
            pump.cancel()
        closing, self._closing = self._closing, []
        if pumps or closing:
            await asyncio.gather(*pumps, *closing, return_exceptions=True)
        while pumps and not self._queue.empty():
            self._queue.get_nowait()


# --- what the caller iterates --------------------------------------------------------------------


class StoredEvents(AsyncGenerator[Delivery, None]):
    """The events of a `read`, one by one; `batches` are the same as they come, for whoever takes these instead."""

    def __init__(self, parts: Parts, source: BatchSource) -> None:
        self.batches = _in_time(parts, source)
        self._each = _each(self.batches)

    def __aiter__(self) -> AsyncGenerator[Delivery, None]:
        return self._each

    def __anext__(self) -> Any:
        return self._each.__anext__()

    def asend(self, value: None) -> Any:
        return self._each.asend(value)

    def athrow(self, *error: Any) -> Any:
        return self._each.athrow(*error)

    def aclose(self) -> Any:
        return self._each.aclose()


def batch_of(chunk: Chunk, places: Sequence[int]) -> Batch:
    return list(map(Delivery, repeat(chunk), places, repeat(READ)))


async def _each(batches: AsyncGenerator[Batch, None]) -> AsyncGenerator[Delivery, None]:
    async with aclosing(batches):
        async for batch in batches:
            for delivery in batch:
                yield delivery


async def _in_time(parts: Parts, source: BatchSource) -> AsyncGenerator[Batch, None]:
    """What is cut when the time is over ends its calls, and with them the servers' searches."""
    async with aclosing(source.batches()) as batches:
        while (batch := await _one_wait(parts, source, anext(batches, None))) is not None:
            yield batch


async def _one_wait(
    parts: Parts, source: BatchSource, more: Awaitable[Batch | None]
) -> Batch | None:
    try:
        async with asyncio.timeout_at(parts.tries().deadline_s):
            return await more
    except TimeoutError:
        line = parts.lines.known(source.key)
        if line is None:
            why = ": no assignment manager has said who serves this"
        else:
            unanswered = source.unanswered.among([member.name for member in line.members])
            why = f" from {', '.join(unanswered)}"
        limit_s = parts.config.timeout_s
        raise Unavailable(f"no rows came within {limit_s:g} s{why}") from None
