"""Trucks on the twin cluster: what the tests of watches have in common."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tests.twins.cluster import MANAGER, TwinCluster
from tests.twins.server import TwinServer
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.space import Space
from utuple.model.utuple import Exact, Family, UTuple
from utuple.wire.codec import epochs_from_wire, templates_from_wire

NOW_US = 1_800_000_000_000_000
TRUCKS: dict[str, Any] = {"subject": "truck", "type": "load"}


def space_of(cluster: TwinCluster, seed: int = 7, **knobs: Any) -> Space:
    config = Config(**{"timeout_s": 10.0, **knobs})
    return Space(put_together([MANAGER], config, cluster, random.Random(seed), lambda: NOW_US))


async def emit(space: Space, *numbers: int, **changes: Any) -> None:
    for number in numbers:
        await space.emit(**{**TRUCKS, "address": "t", "data": {"kg": number}, **changes})


def put(server: TwinServer, *numbers: int) -> None:
    """Events that this server has taken, whoever sent them."""
    for number in numbers:
        id_ = f"{server.name:.1}{number:>15}".encode()
        where = Exact("t", NOW_US)
        server.add(UTuple(id_, Family("truck", "load"), where, {"kg": number}, None, 3600))


async def take(events: Deliveries, count: int, *, ack: bool = False) -> list[int]:
    found = []
    for _ in range(count):
        event = await asyncio.wait_for(anext(events), 60)
        found.append(event.data["kg"])
        if ack:
            await event.ack()
    return found


async def rest(events: Deliveries, quiet_s: float = 5.0) -> list[int]:
    """Everything, until nothing has come for so long."""
    found: list[int] = []
    while True:
        try:
            event = await asyncio.wait_for(anext(events), quiet_s)
        except TimeoutError:
            return found
        found.append(event.data["kg"])


async def held(events: Deliveries) -> list[int]:
    """Taken: all that has come by now."""
    return [event.data["kg"] for event in await events.take(1_000, timeout_s=0)]


async def nothing_comes(events: Deliveries) -> bool:
    return not await rest(events)


def now_s() -> float:
    return asyncio.get_running_loop().time()


def registered_at(cluster: TwinCluster, name: str) -> list[int]:
    """The epochs by which EFs were brought to this server."""
    return [
        epochs_from_wire(request.templates)[half.family]
        for request in cluster.calls_to(name)
        for half in templates_from_wire(request.templates)
    ]
