"""The CFs that belong to one sCA server, for its refill.

Whose a device is goes by the names the sCA server knew when it asked (`utuple/cluster/shares.py`). Should these change while it
reads, it either has all that is its own by the new ones, or it asks again (`sca_server/sharing/tenure.py`): so nobody has to agree
with anybody here.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from utuple.cluster.shares import Shares
from utuple.errors import InvalidInput
from utuple.model.columns import Columns, left_us
from utuple.model.value import check_name
from utuple.runtime.clock import now_us
from utuple.store.contract import Batch, Store
from utuple.wire import utuple_pb2 as pb

MOST_SCAS = 1_000


async def refill(store: Store, request: pb.DevicesRequest) -> AsyncGenerator[Columns, None]:
    """With the lifetime each has left; in chunks, so that nothing else waits long."""
    shares = _shares(request)
    async with aclosing(store.devices(now_us())) as found:
        async for batch in found:
            columns = _left(batch, now_us())
            if shares is not None:
                rows = rows_of(request.share_of, shares, columns)
                columns = columns if len(rows) == len(columns) else columns.take(rows)
            if len(columns):
                yield columns


def rows_of(name: str, shares: Shares, columns: Columns) -> Sequence[int]:
    """Those that belong to the sCA server of this name."""
    families, owner = columns.families, shares.owner
    pairs = zip(columns.family, columns.addresses, strict=True)
    return [row for row, (number, at) in enumerate(pairs) if owner(families[number], at) == name]


def _shares(request: pb.DevicesRequest) -> Shares | None:
    """None: all belong to who asks."""
    names = [check_name("scas", name) for name in request.scas]
    if len(names) > MOST_SCAS:
        raise InvalidInput("scas", f"{len(names)} names", f"at most {MOST_SCAS}")
    if not names and not request.share_of:
        return None
    if request.share_of not in names:
        raise InvalidInput("share_of", request.share_of, "must be one of scas")
    return Shares(names) if len(names) > 1 else None


def _left(batch: Batch, at_us: int) -> Columns:
    rows = zip(batch.columns.lifetimes_us, batch.expires_us, strict=True)
    return replace(batch.columns, lifetimes_us=array("q", [left_us(*row, at_us) for row in rows]))
