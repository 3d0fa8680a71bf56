"""What is searched in the store: for an EF whose reader reads on, and for one of lifetime 0, read once."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing

from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.utuple import UTuple
from utuple.runtime.clock import monotonic_s, now_us
from utuple.runtime.logs import Log
from utuple.runtime.tasks import Tasks
from utuple.server.delivering.cursor import Reading, Sending
from utuple.server.delivering.cursors import Cursors
from utuple.server.delivering.fleeting import FleetingMatches
from utuple.server.delivering.reading.together import Together, near
from utuple.server.ports import DeliveryPort
from utuple.store.contract import OWN_ORIGIN, Batch, Search, Store, StoredTemplate, StoreUnavailable

_log = Log("utuple.server.delivering.reading.searching")


async def stored_matches(
    engine_store: Store,
    template: UTuple,
    upto: int,
    origins: Mapping[str, int],
    now_us: int,
) -> AsyncGenerator[Columns, None]:
    """What was registered here up to `upto`, then all that drains have brought here, origin by origin."""
    for origin, last in {OWN_ORIGIN: upto, **origins}.items():
        search = Search(template, 0, last, now_us, origin=origin)
        async with aclosing(engine_store.search(search)) as found:
            async for batch in found:
                yield batch.columns


def searches(
    reading: Reading, stored: StoredTemplate, now_us: int, late_s: float
) -> Iterator[Search]:
    """One after the other, in the order of seqs.

    An EA that came before the EF must be alive now. One that came after it has met it: both lived at once, so the
    reader gets it (law 2), also if the EA has expired while the server was dead or the reader's connection broken. So
    these are found for a while after their end. What other servers brought has their seqs, which say nothing of when
    this EF came; there the EA must be alive."""
    template, own = stored.utuple, stored.seq if reading.origin == OWN_ORIGIN else reading.upto
    if reading.after < own:
        upto = min(own, reading.upto)
        yield Search(template, reading.after, upto, now_us, origin=reading.origin)
    if own < reading.upto:
        yield Search(template, max(own, reading.after), reading.upto, since_us(now_us, late_s))


def since_us(now_us: int, late_s: float) -> int:
    return now_us - round(late_s * MICROSECONDS)


class StoredSearches:
    """Runs the searches that the cursors wait for, a limited number of them at a time, beside the writer.

    A search that fails is begun again by its cursor from the last row that was sent, so a reader misses nothing by it
    and is sent nothing twice."""

    def __init__(
        self,
        engine: DeliveryPort,
        cursors: Cursors,
        fleeting: FleetingMatches,
        tasks: Tasks,
        send: Callable[[Sequence[Sending]], None],
    ) -> None:
        self._engine = engine
        self._cursors = cursors
        self._fleeting = fleeting
        self._tasks = tasks
        self._send = send
        self._running = 0
        self.together = 0
        """Searches that were made for several EFs at once, so far."""

    def pump(self) -> None:
        """Begin those whose turn has come."""
        while self._engine.is_serving and self._running < self._engine.config.max_readings:
            reading = self._cursors.next_reading()
            if reading is None:
                return
            self._running += 1
            self._tasks.start(self._run([reading, *self._begin_beside(reading)]), "reading")

    def _begin_beside(self, reading: Reading) -> list[Reading]:
        """Those that are read with it, if they are many and none of them lacks much."""
        c = self._engine.config
        others = self._cursors.beside(reading)
        rows_each = c.together_rows_each
        if reading not in near([reading], rows_each * (1 + len(others))):
            return []
        others = near(others, rows_each)
        if 1 + len(others) < c.together_least:
            return []
        self._cursors.begin_beside(others)
        self.together += 1
        return others

    async def _run(self, readings: Sequence[Reading]) -> None:
        try:
            await self._search(readings)
        except StoreUnavailable as error:
            _log.warning("stored search broken off", reason=error)
            await self._break(readings)
        except Exception:  # a bug: its owner reports it, and the reader still wants the rest
            await self._break(readings)
            raise
        finally:
            self._running -= 1
            self.pump()

    async def _break(self, readings: Sequence[Reading]) -> None:
        await asyncio.sleep(self._engine.config.reopen_s)
        for reading in readings:
            self._cursors.break_reading(reading)

    async def _search(self, readings: Sequence[Reading]) -> None:
        templates = self._engine.writer.templates
        known = [reading for reading in readings if reading.formal in templates]
        if not known:
            return
        searched = self._found(known, [templates[one.formal] for one in known])
        async with aclosing(searched) as parts:
            async for batch, found in parts:
                sending, known = self._cursors.read(known, batch, found)
                if sending is not None:
                    self._send([sending])
                if not known:
                    return
        for reading in known:
            self._end(reading)

    async def _found(
        self, readings: Sequence[Reading], templates: Sequence[StoredTemplate]
    ) -> AsyncGenerator[tuple[Batch, Mapping[bytes, array[int]]], None]:
        """In the order of seqs, and for whom each row is."""
        late_s = self._engine.config.late_s
        if len(readings) > 1:
            together = Together(readings, templates)
            search = together.search(since_us(now_us(), late_s))
            async with aclosing(self._engine.store.search(search)) as found:
                async for batch in found:
                    yield batch, together.found(batch, now_us())
            return
        for search in searches(readings[0], templates[0], now_us(), late_s):
            async with aclosing(self._engine.store.search(search)) as found:
                async for batch in found:
                    yield batch, {readings[0].formal: array("q", range(len(batch)))}

    def _end(self, reading: Reading) -> None:
        cursor = self._cursors.get(reading.formal)
        ends = cursor is not None and cursor.is_reading and cursor.search is reading
        fleeting = self._fleeting.pop(reading.formal, monotonic_s()) if ends else ()
        self._send(self._cursors.end_reading(reading, fleeting))
