"""One who may do everything, and knows the ids of what others have registered: he tries to cancel it (law 8).

He reads them in the servers' stores, where nobody else can, so that he knows more than anybody who is outside. That nothing of it
has an effect is noticed by the laws of those whose it is: their commands and events would be missed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.virtual.coverage import ANOTHERS
from tests.virtual.world.loop import Life
from utuple.errors import UTupleError
from utuple.model.utuple import Family
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb

if TYPE_CHECKING:
    from tests.virtual.programs.cluster import Cluster

RIVAL = "rival"
_EVERY_S = 1.0
_AT_ONCE = 3


class Rival:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._dice = cluster.world.dice(RIVAL)
        cluster.add(RIVAL, self._be)

    async def _be(self, life: Life) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            name = self._dice.choice(list(self._cluster.servers))
            found = self._kept_at(name)
            chosen = self._dice.sample(found, min(_AT_ONCE, len(found)))
            request = pb.RegisterRequest(cancels=[self._cancel(name, *one) for one in chosen])
            try:
                answer = await self._cluster.network.call(f"{name}:1", "register", request, 1.0)
            except UTupleError:
                continue
            if any(one.reason == pb.NOT_ALLOWED for one in answer.refusals):
                self._cluster.world.count(ANOTHERS)

    def _kept_at(self, name: str) -> list[tuple[bytes, Family]]:
        """EFs, CAs and CFs."""
        disk = self._cluster.processes[name].disk
        assert disk is not None and isinstance(disk.store, MemoryStore)
        kept = {one.packed.id: one.packed.family for one in disk.store._templates.values()}
        kept |= {id_: row.utuple.family for id_, row in disk.store._devices.items()}
        return sorted(kept.items())

    def _cancel(self, name: str, id_: bytes, family: Family) -> pb.Cancel:
        """Routed as the server would have it."""
        engine = self._cluster.engine(name)
        epoch = 0 if engine is None else engine.writer.lines.epoch_of(family)
        named = pb.Family(subject=family.subject, type=family.type, epoch=epoch)
        return pb.Cancel(id=id_, family=named)
