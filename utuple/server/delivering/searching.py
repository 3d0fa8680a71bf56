"""What is searched in the store: for an EF whose reader reads on, and for one of lifetime 0, read once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing

from utuple.model.columns import MICROSECONDS, Columns
from utuple.model.utuple import UTuple
from utuple.server.delivering.cursor import Reading
from utuple.store.contract import OWN_ORIGIN, Search, Store, StoredTemplate


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
        since_us = now_us - round(late_s * MICROSECONDS)
        yield Search(template, max(own, reading.after), reading.upto, since_us)
