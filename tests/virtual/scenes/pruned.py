"""A line is partitioned, and once nothing of the time before is left EFs visit their keepers alone, and the other members forget them. Then it is cut anew,
loses an owner and becomes help again, while a reader is away through all of it. In a section that nobody else uses: what others
have stored would be visited for an hour."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.virtual.coverage import PRUNED
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.scenes.partitioned import SHORT_S, Scene
from utuple.model.key import key_of
from utuple.model.utuple import Family

_EARLY = "early"
_NAMES = 40
"""Tried: enough to meet every line."""


async def pruned(
    cluster: Cluster, client: Client, other: Client, families: Sequence[Family]
) -> None:
    family = _unused(cluster, families)
    if family is None or len(cluster.servers) < 3:
        return
    scene = Scene(cluster, client, other, family)
    if not await scene.grows():
        return
    with scene.spread():
        await scene.watch("before")
        await scene.emit(_EARLY, SHORT_S)
        if await scene.is_partitioned() and await scene.is_pruned():
            cluster.world.count(PRUNED)
            async with scene.reader_away():
                await scene.watch("after")
                await scene.emit()
                await scene.is_recut()
                await scene.emit()
                await scene.owner_goes_off()
                await scene.emit()
                await scene.is_gathered()
                await scene.all_come_on()
                await scene.emit()
                await asyncio.sleep(SHORT_S)
    await scene.close()


def _unused(cluster: Cluster, families: Sequence[Family]) -> Family | None:
    """Of a line that no other family lies in."""
    keys = [key_of(*family) for family in families]
    for number in range(_NAMES):
        family = Family("cut", f"number {number}")
        section = cluster.line_of(key_of(*family)).section
        if not any(key in section for key in keys):
            return family
    return None
