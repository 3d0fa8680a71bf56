"""Stored matches of an EF in order of their time: asked for page by page, at every member of one epoch, and merged.

A page begins after a key (time and id), which means the same on every server. So whatever happens between two pages, a
member that fails or rows that move from one to another, the next page goes on where the last one ended.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from utuple.client.parts import Parts
from utuple.client.reading.read import Batch, Unanswered, has_left, open_read
from utuple.client.receiving.delivery import READ, Chunk, Delivery
from utuple.client.routing.every_member import FanOut
from utuple.client.routing.outcome import Behind
from utuple.client.routing.route import Target
from utuple.cluster.line import Line
from utuple.errors import OutcomeUnknown, Unavailable
from utuple.model.key import key_of
from utuple.model.utuple import UTuple
from utuple.wire import utuple_pb2 as pb

Key = tuple[int, bytes]
"""Time in microseconds, then id."""


class Row(NamedTuple):
    key: Key
    chunk: Chunk
    place: int


@dataclass(frozen=True, slots=True)
class MemberPage:
    """What one member gave of a page, in order."""

    rows: list[Row]
    is_cut: bool
    """There may be more after its last row."""


def merged(pages: Iterable[MemberPage], *, newest_first: bool) -> tuple[list[Row], bool]:
    """The rows of all members that are certain, in order and without repeats; and whether that is all there is.

    Beyond the last row of a page that was cut its member may have others, so rows of other members that lie beyond it
    are not certain yet: the next page brings them again. The nearest of these ends is certain itself, so there is
    always at least one row.
    """
    pages = list(pages)
    found = sorted((row for page in pages for row in page.rows), key=_key, reverse=newest_first)
    ends = [page.rows[-1].key for page in pages if page.is_cut]
    if ends:
        end = max(ends) if newest_first else min(ends)
        found = [row for row in found if (row.key >= end if newest_first else row.key <= end)]
    return list(_without_repeats(found)), not ends


def _key(row: Row) -> Key:
    return row.key


def _without_repeats(rows: Iterable[Row]) -> Iterator[Row]:
    """Copies of a row have the same key, and lie side by side."""
    last: Key | None = None
    for row in rows:
        if row.key != last:
            yield row
        last = row.key


class PagedReading:
    """One `read` in order of time."""

    def __init__(
        self, parts: Parts, wanted: UTuple, limit: int | None, *, newest_first: bool
    ) -> None:
        self._parts = parts
        self._wanted = wanted
        self.key = key_of(*wanted.family)
        self.unanswered = Unanswered()
        self._left = limit
        self._newest_first = newest_first

    async def batches(self) -> AsyncGenerator[Batch, None]:
        after: Key | None = None
        is_over = False
        while not is_over and self._left != 0:
            rows, is_over = merged(await self._ask(after), newest_first=self._newest_first)
            if self._left is not None:
                rows = rows[: self._left]
                self._left -= len(rows)
            if rows:
                after = rows[-1].key
                yield [Delivery(row.chunk, row.place, READ) for row in rows]

    async def _ask(self, after: Key | None) -> list[MemberPage]:
        parts = self._parts
        rows = min(parts.config.page_rows, self._left or parts.config.page_rows)
        page = pb.Page(rows=rows, newest_first=self._newest_first)
        if after is not None:
            page.after_us, page.after_id = after

        async def call(target: Target, line: Line, retry: bool) -> MemberPage:
            try:
                with self.unanswered.waiting_for(target.member):
                    return await self._page_of(target.member, line, page)
            except OutcomeUnknown as error:  # nothing is registered by reading
                raise Unavailable(f"{target.member} broke off: {error}") from None

        fan_out: FanOut[MemberPage] = parts.fan_out(self._wanted, registers=False)
        _, pages = await fan_out.run(self.key, call, parts.tries())
        return list(pages.values())

    async def _page_of(self, member: str, line: Line, page: pb.Page) -> MemberPage:
        """One whose server has left the line meanwhile may have ended early: its rows are elsewhere."""
        opened = await open_read(self._parts, self._wanted, line, member, page=page)
        rows: list[Row] = []
        size_bytes = 0
        try:
            async for chunk in opened.chunks():
                keys = zip(chunk.columns.times_us, chunk.ids, strict=True)
                rows += [Row(key, chunk, place) for place, key in enumerate(keys)]
                size_bytes += sum(map(len, chunk.columns.payloads))
                if size_bytes >= self._parts.config.page_bytes:
                    break
        finally:
            await opened.close()
        if has_left(self._parts, self.key, member, line):
            raise Behind("it has left the line")
        is_cut = size_bytes >= self._parts.config.page_bytes or len(rows) >= page.rows
        return MemberPage(rows, is_cut)
