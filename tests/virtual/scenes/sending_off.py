"""A member that goes off, and may be drained: what several scenes do to the server that has what they are about."""

from __future__ import annotations

import asyncio
import random

from tests.virtual.programs.cluster import Cluster
from tests.virtual.programs.servers import address_of
from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind
from utuple.errors import UTupleError
from utuple.model.key import key_of
from utuple.model.utuple import Family
from utuple.wire.cluster import move_to_wire

LONG_S = 20.0
"""By then a move is over, though it may begin anew."""
_LOOK_S = 0.1


class SendingOff:
    def __init__(self, cluster: Cluster, family: Family, dice: random.Random) -> None:
        self._cluster, self._world = cluster, cluster.world
        self._key, self._dice = key_of(*family), dice

    async def send_off(self, member: str = "") -> Move | None:
        """A member (this one) goes off, with another server in its place if it is the only one; the drain that may follow."""
        line = self._line
        member = member or self._dice.choice(line.accumulatable)
        off = [one.name for one in line.members if not one.accumulatable and not one.suspended]
        if len(line.accumulatable) == 1 and off:
            await self._order(MoveKind.FLIP_ON, self._dice.choice(off))
        if len(self._line.accumulatable) > 1:
            await self._order(MoveKind.FLIP_OFF, member)
        others = [name for name in self._cluster.servers if self._line.member(name) is None]
        self._dice.shuffle(others)
        while others and member in self._line.accumulatable:  # one was drained of it before
            await self._order(MoveKind.HELP_MEMORY, member, others.pop())
        line = self._line
        if member in line.accumulatable or line.member(member) is None:
            return None
        heir = self._dice.choice(line.accumulatable)
        return Move(MoveKind.DRAIN, line.section, line.epoch, member, heir)

    @property
    def _line(self) -> Line:
        return self._cluster.line_of(self._key)

    async def _order(self, kind: MoveKind, member: str, helper: str = "") -> None:
        line = self._line
        await self.order(Move(kind, line.section, line.epoch, member, helper))

    async def order(self, move: Move) -> None:
        """It is over, or so much time has passed."""
        line = self._cluster.line_of(move.section.start)
        self._world.trace("order", move)
        try:
            home = address_of(line.home)
            await self._cluster.network.call(home, "move", move_to_wire(move), 3.0)
        except UTupleError as error:
            self._world.trace("order lost", error)
        for _ in range(round(LONG_S / _LOOK_S)):
            await asyncio.sleep(_LOOK_S)
            if self._cluster.line_of(move.section.start) != line:
                return
