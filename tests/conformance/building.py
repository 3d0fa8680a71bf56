"""Short ways to say what a conformance test stores and what it asks."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.strategies import NOW_US
from utuple.model.area import Area, Position
from utuple.model.columns import columns_of, lifetime_us
from utuple.model.condition import ANY, AddressCondition, DataCondition
from utuple.model.packed import packed
from utuple.model.utuple import Exact, Family, Kind, Template, UTuple
from utuple.model.value import Value
from utuple.store.contract import (
    OWN_ORIGIN,
    Batch,
    Search,
    Store,
    StoredTemplate,
    Transaction,
)

TRUCK = Family("truck", "load")
AIRCON = Family("aircon", "power")
SERVER = "server-1"
HOUR_S = 3_600.0
SECOND_US = 1_000_000
FOREVER = 1 << 62

Open = Callable[[], Store]


@dataclass(frozen=True)
class Place:
    """Where a store's content lies; each `make` is a new process's store on that content."""

    make: Open


_numbers = itertools.count()


def fresh_family() -> Family:
    """Nobody else's, so that generated examples share a database and do not meet."""
    return Family(f"subject-{next(_numbers)}", "type")


def new_id() -> bytes:
    return uuid.uuid4().bytes


def event(
    address: str = "truck-1",
    time_us: int = NOW_US,
    position: Position | None = None,
    data: Mapping[str, Value] | None = None,
    lifetime_s: float = HOUR_S,
    family: Family = TRUCK,
) -> UTuple:
    exact = Exact(address, time_us, position)
    return UTuple(new_id(), family, exact, data or {}, None, lifetime_s)


def device(
    address: str = "room-101",
    where: Mapping[str, DataCondition] | None = None,
    position: Position | None = None,
    lifetime_s: float = HOUR_S,
    family: Family = AIRCON,
    reader: str = "driver",
) -> UTuple:
    exact = Exact(address, NOW_US, position)
    return UTuple(new_id(), family, exact, None, where or {}, lifetime_s, reader)


def formal(
    address: AddressCondition = ANY,
    since_us: int | None = None,
    until_us: int | None = None,
    area: Area | None = None,
    where: Mapping[str, DataCondition] | None = None,
    family: Family = TRUCK,
    reader: str = "reader",
) -> UTuple:
    template = Template(address, since_us, until_us, area)
    return UTuple(new_id(), family, template, None, where or {}, HOUR_S, reader)


def command(
    address: AddressCondition = ANY,
    data: Mapping[str, Value] | None = None,
    area: Area | None = None,
    family: Family = AIRCON,
) -> UTuple:
    return UTuple(new_id(), family, Template(address, area=area), data or {}, None, 0.0)


def batch(
    utuples: Sequence[UTuple],
    first_seq: int = 1,
    now_us: int = NOW_US,
    origin: str = OWN_ORIGIN,
    shadow: bytes = b"",
) -> Batch:
    """As the writer numbers them: seqs in a row, expiry from now. A moved EA has lost its lifetime."""
    expires = [now_us + lifetime_us(utuple.lifetime_s) for utuple in utuples]
    seqs = array("Q", range(first_seq, first_seq + len(utuples)))
    columns = columns_of(utuples)
    if origin and any(utuple.kind is Kind.EA for utuple in utuples):
        columns = replace(columns, lifetimes_us=array("q", bytes(8 * len(utuples))))
    return Batch(columns, seqs, array("q", expires), origin, shadow)


def stored(utuple: UTuple, seq: int = 1, expires_us: int | None = None) -> StoredTemplate:
    default = NOW_US + lifetime_us(utuple.lifetime_s)
    return StoredTemplate(packed(utuple), seq, default if expires_us is None else expires_us)


async def keep(store: Store, *utuples: UTuple, first_seq: int = 1) -> None:
    """EAs and CFs, in one transaction."""
    events = [one for one in utuples if one.kind is Kind.EA]
    devices = [one for one in utuples if one.kind is Kind.CF]
    after = first_seq + len(events)
    await store.commit(
        Transaction(
            seq=first_seq + len(utuples) - 1,
            events=[batch(events, first_seq)] if events else (),
            devices=[batch(devices, after)] if devices else (),
        )
    )


async def chunks(
    store: Store,
    template: UTuple,
    after: int = 0,
    upto: int = FOREVER,
    now_us: int = NOW_US,
    chunk_rows: int = 2_000,
    origin: str = OWN_ORIGIN,
) -> list[Batch]:
    asked = Search(template, after, upto, now_us, chunk_rows, origin)
    return [found async for found in store.search(asked)]


async def ids_found(
    store: Store, template: UTuple, origin: str = OWN_ORIGIN, **limits: int
) -> list[bytes]:
    return ids_of(await chunks(store, template, origin=origin, **limits))


def ids_of(batches: Iterable[Batch]) -> list[bytes]:
    return [id_ for one in batches for id_ in one.columns.each_id()]


async def ids_of_devices(store: Store, now_us: int = NOW_US) -> list[bytes]:
    return ids_of([one async for one in store.devices(now_us)])


async def until(is_so: Callable[[], bool]) -> None:
    """Waits by asking."""
    while True:
        if is_so():
            return
        await asyncio.sleep(0)
