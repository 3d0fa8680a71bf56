"""The stored matches of a template that is not kept: an EF of lifetime 0, read once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from utuple.model.columns import Columns
from utuple.model.utuple import UTuple
from utuple.store.contract import OWN_ORIGIN, Search, Store


async def stored_matches(
    engine_store: Store,
    template: UTuple,
    upto: int,
    origins: Mapping[str, int],
    now_us: int,
    *,
    are_many: bool = False,
) -> AsyncGenerator[Columns, None]:
    """What was registered here up to `upto`, then all that drains have brought here, origin by origin."""
    for origin, last in {OWN_ORIGIN: upto, **origins}.items():
        search = Search(template, 0, last, now_us, is_large=are_many, origin=origin)
        async with aclosing(engine_store.search(search)) as found:
            async for batch in found:
                yield batch.columns
