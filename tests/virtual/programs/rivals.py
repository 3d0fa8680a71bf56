"""One who may do everything, and knows the ids of what others have registered: he tries to cancel it, and to come first under the ids of
readers that they have yet to name (law 8).

He reads them in the servers' stores, where nobody else can, so that he knows more than anybody who is outside. That nothing of it
has an effect is noticed by the laws of those whose it is: their commands and events would be missed. That he was let in under an
id that is another's is noticed here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.virtual.coverage import ANOTHERS
from tests.virtual.world.loop import Life
from utuple.errors import UTupleError
from utuple.model.identity import is_named
from utuple.model.utuple import Family
from utuple.store.memory import MemoryStore
from utuple.wire import utuple_pb2 as pb
from utuple.wire.codec import templates_to_wire

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
            await self._try(name, cancels=[self._cancel(name, *one) for one in chosen])
            if (came := self._first_under(name)) is not None and await self._try(
                name, templates=came
            ):
                self._cluster.world.bug("law 8: another's id for a named reader was to be had")

    async def _try(self, name: str, **said: Any) -> bool:
        """Was it taken?"""
        request = pb.RegisterRequest(**said)
        try:
            answer = await self._cluster.network.call(f"{name}:1", "register", request, 1.0)
        except UTupleError:
            return False
        if any(one.reason == pb.NOT_ALLOWED for one in answer.refusals):
            self._cluster.world.count(ANOTHERS)
        return not answer.refusals

    def _first_under(self, name: str) -> pb.Templates | None:
        """What somebody reads here by a name, as if he had not come yet: under another id that only he can have."""
        disk = self._cluster.processes[name].disk
        assert disk is not None and isinstance(disk.store, MemoryStore)
        kept = [one.packed for one in disk.store._templates.values() if is_named(one.packed.id)]
        if not kept:
            return None
        half = self._dice.choice(sorted(kept, key=lambda one: one.id))
        id_ = half.id[:-4] + self._dice.randbytes(4)
        epochs = {half.family: self._epoch(name, half.family)}
        return templates_to_wire([half._replace(id=id_, reader=id_.hex())], epochs=epochs)

    def _kept_at(self, name: str) -> list[tuple[bytes, Family]]:
        """EFs, CAs and CFs."""
        disk = self._cluster.processes[name].disk
        assert disk is not None and isinstance(disk.store, MemoryStore)
        kept = {one.packed.id: one.packed.family for one in disk.store._templates.values()}
        kept |= {id_: row.utuple.family for id_, row in disk.store._devices.items()}
        return sorted(kept.items())

    def _cancel(self, name: str, id_: bytes, family: Family) -> pb.Cancel:
        """Routed as the server would have it."""
        epoch = self._epoch(name, family)
        named = pb.Family(subject=family.subject, type=family.type, epoch=epoch)
        return pb.Cancel(id=id_, family=named)

    def _epoch(self, name: str, family: Family) -> int:
        engine = self._cluster.engine(name)
        return 0 if engine is None else engine.writer.lines.epoch_of(family)
