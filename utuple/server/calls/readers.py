"""Readers as an operator sees them: who reads here, how far each is behind, and how one is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from utuple.errors import Unavailable
from utuple.model.columns import lifetime_us
from utuple.model.utuple import Kind
from utuple.model.value import check_name
from utuple.runtime.clock import monotonic_s, now_us
from utuple.server.writing.engine import Engine
from utuple.server.writing.request import Request
from utuple.store.contract import OWN_ORIGIN, Search, StoredTemplate, StoreUnavailable
from utuple.wire import utuple_pb2 as pb

_LOOKED_AT = 1_000
COUNTED_MOST = 10_000
"""Matches of one EF: whoever is further behind than that is far behind."""
COUNTING_S = 1.0
"""For all readers: an operator waits for the answer two seconds."""
FAMILIES_TOLD = 8


async def statuses(engine: Engine) -> list[pb.ReaderStatus]:
    """Who reads here, connected or expected back. Asked by an operator, not by the load monitor: to count costs
    searches."""
    readers: dict[str, pb.ReaderStatus] = {}
    until_s = monotonic_s() + COUNTING_S
    async for stored in _formals(engine):
        half = stored.packed
        status = readers.setdefault(half.reader, pb.ReaderStatus(reader=half.reader))
        status.formals += 1
        family = pb.Family(subject=half.family.subject, type=half.family.type)
        if family not in status.families and len(status.families) < FAMILIES_TOLD:
            status.families.append(family)
        if engine.delivering.cursors.get(half.id) is not None:
            status.connected = True
        elif stored.expires_us > status.expires_us:
            status.expires_us = stored.expires_us
            status.seen_us = stored.expires_us - lifetime_us(half.lifetime_s)
        _add_figures(engine, stored, status)
        lag = await _lag(engine, stored) if monotonic_s() < until_s else None
        status.lag += lag or 0
        status.lag_is_more = status.lag_is_more or lag is None or lag >= COUNTED_MOST
    for status in readers.values():
        if status.connected:
            status.expires_us = status.seen_us = 0
    return list(readers.values())


def _add_figures(engine: Engine, stored: StoredTemplate, status: pb.ReaderStatus) -> None:
    """What its terms have to do with; of several EFs of one reader, rates add up and times are those of the last."""
    half, delivering = stored.packed, engine.delivering
    status.terms = status.terms or half.terms.decode()
    presence, pool = delivering.away.presence.get(half.id), delivering.seats.get(half.id)
    if presence is not None:
        status.on_s, status.off_s = presence.on_s, presence.off_s
        status.arrival_per_s += presence.arrival_per_s
        status.service_per_s = presence.service_per_s
        status.dropped += presence.dropped
        if presence.zeta is not None:
            status.zeta = presence.zeta
    if pool is not None:
        status.parked += len(pool.ledger.parked)
        status.open += len(pool.ledger.open)
        status.seats = max(status.seats, len(pool.ledger.seats))


async def _formals(engine: Engine) -> AsyncIterator[StoredTemplate]:
    """EFs that somebody reads."""
    for number, stored in enumerate(list(engine.writer.templates.values())):
        if number % _LOOKED_AT == 0:
            await asyncio.sleep(0)  # there may be a million: others have their turn
        if stored.packed.kind is Kind.EF and stored.packed.reader:
            yield stored


async def _lag(engine: Engine, stored: StoredTemplate) -> int | None:
    """EAs this EF would be given now. None: it would take long to count them."""
    cursors, total = engine.delivering.cursors, 0
    for origin, after in _due(engine, stored.packed.id).items():
        upto = cursors.committed if origin == OWN_ORIGIN else cursors.origins[origin]
        if after >= upto:
            continue
        search = Search(stored.utuple, after, upto, now_us(), origin=origin)
        try:
            found = await _count(engine, search)
        except StoreUnavailable:
            found = None
        if found is None:
            return None
        total += found
    return total


async def _count(engine: Engine, search: Search) -> int | None:
    """Without what was dropped while its reader was away: that is decided, and it is not given."""
    absences = engine.delivering.away.absences.of(search.template.id)
    decided = [one for one in absences if one.origin == search.origin and one.decision is not None]
    if not decided:
        return await engine.store.count(search, COUNTED_MOST)
    total = 0
    async with aclosing(engine.store.search(search)) as found:
        async for batch in found:
            ids, times_us = batch.columns.id_at, batch.columns.times_us
            for row, seq in enumerate(batch.seqs):
                span = next((one for one in decided if one.holds(seq)), None)
                total += span is None or span.keeps(seq, ids(row), times_us[row])
            if total >= COUNTED_MOST:
                break
    return min(total, COUNTED_MOST)


def _due(engine: Engine, formal: bytes) -> Mapping[str, int]:
    """By origin: after which seq there may be some."""
    cursors = engine.delivering.cursors
    cursor = cursors.get(formal)
    if cursor is not None:
        return {origin: cursor.covered[origin] for origin in cursor.due}
    return {
        origin: cursors.acknowledged(formal, origin) for origin in (OWN_ORIGIN, *cursors.origins)
    }


async def forget(engine: Engine, reader: str) -> pb.ForgetReaderAnswer:
    """Every EF of this reader, with its positions. Again, it is a no-op. One that is connected stays: its program would
    wait in vain."""
    check_name("reader", reader)
    own = [one.packed async for one in _formals(engine) if one.packed.reader == reader]
    if any(engine.delivering.cursors.get(half.id) is not None for half in own):
        return pb.ForgetReaderAnswer(connected=True)
    cancels = [(row, half.id, half.family) for row, half in enumerate(own)]
    epochs = {half.family: engine.writer.lines.epoch_of(half.family) for half in own}
    if cancels:
        answer = await engine.register(Request(cancels=cancels, epochs=epochs))
        if answer.refusals:
            raise Unavailable("load is being moved: nothing may be forgotten yet; try again")
    return pb.ForgetReaderAnswer(formals=len(cancels))
