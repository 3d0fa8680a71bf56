"""Parked deliveries of one reader, as an operator sees them: read, released to be tried anew, or dropped."""

from __future__ import annotations

from contextlib import aclosing

from utuple.errors import InvalidInput
from utuple.model.utuple import ID_BYTES
from utuple.model.value import check_name
from utuple.runtime.clock import now_us
from utuple.server.delivering.cursor import Reading
from utuple.server.delivering.reading.searching import searches
from utuple.server.delivering.sharing.ledger import Place
from utuple.server.delivering.sharing.seats import Pool
from utuple.server.writing.engine import Engine
from utuple.store.contract import Batch, StoredTemplate
from utuple.wire import utuple_pb2 as pb

MOST = 10_000


async def parked(engine: Engine, request: pb.ParkedRequest) -> pb.ParkedAnswer:
    """Those that live. What has expired meanwhile is nobody's any more."""
    reader = check_name("reader", request.reader)
    wanted = _ids(request.ids)
    answer = pb.ParkedAnswer()
    for pool in engine.delivering.seats:
        stored = engine.writer.templates.get(pool.formal)
        if stored is None or stored.packed.reader != reader:
            continue
        answer.known = True
        found = await _read(engine, pool, stored)
        gone = pool.ledger.parked.keys() - found.keys()
        engine.delivering.seats.unpark(pool.formal, gone, again=False)
        chosen = {p: event for p, event in found.items() if not wanted or event.id in wanted}
        if request.action != pb.ParkedRequest.LIST:
            again = request.action == pb.ParkedRequest.RELEASE
            engine.delivering.seats.unpark(pool.formal, chosen, again=again)
        answer.events.extend(list(chosen.values())[: MOST - len(answer.events)])
    return answer


def _ids(said: bytes) -> set[bytes]:
    if len(said) % ID_BYTES or len(said) > MOST * ID_BYTES:
        raise InvalidInput("ids", f"{len(said)} bytes", f"must be 16 each, of at most {MOST:,}")
    return {said[at : at + ID_BYTES] for at in range(0, len(said), ID_BYTES)}


async def _read(engine: Engine, pool: Pool, stored: StoredTemplate) -> dict[Place, pb.ParkedEvent]:
    """By place, in the order of seqs."""
    found: dict[Place, pb.ParkedEvent] = {}
    for origin in sorted({origin for origin, _ in pool.ledger.parked}):
        seqs = [seq for there, seq in pool.ledger.parked if there == origin]
        reading = Reading(pool.formal, min(seqs) - 1, max(seqs), origin)
        for search in searches(reading, stored, now_us(), engine.config.late_s):
            async with aclosing(engine.store.search(search)) as batches:
                async for batch in batches:
                    for row, seq in enumerate(batch.seqs):
                        if (origin, seq) in pool.ledger.parked:
                            found[origin, seq] = _event(engine, pool, batch, row)
    return found


def _event(engine: Engine, pool: Pool, batch: Batch, row: int) -> pb.ParkedEvent:
    columns, place = batch.columns, (batch.origin, batch.seqs[row])
    parked = pool.ledger.parked[place]
    family = columns.families[columns.family[row]]
    return pb.ParkedEvent(
        id=columns.id_at(row),
        origin=batch.origin or engine.config.name,
        seq=batch.seqs[row],
        attempts=parked.attempts,
        parked_us=parked.parked_us,
        reason=parked.reason,
        family=pb.Family(subject=family.subject, type=family.type),
        address=columns.addresses[row],
        time_us=columns.times_us[row],
        payload=columns.payloads[row],
    )
