"""Scenes around a move: what a client does in the milliseconds of a hand-over, and what comes a little later
and would show that something was forgotten. Chance alone would seldom play them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from itertools import count
from typing import Any

from tests.virtual.plan import FOR_EVER, Commanding, Emission, Serving, Watching
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind
from utuple.model.condition import prefix
from utuple.model.key import key_of
from utuple.model.utuple import Family, datetime_of

_PLAYED = 0.4
"""The share of moves with a scene."""
_RACE_S = 0.12
"""Within this of the order a hand-over is under way."""


class Scenes:
    def __init__(
        self, cluster: Cluster, clients: Sequence[Client], families: Sequence[Family]
    ) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._clients = clients
        self._families = families
        self._dice = cluster.world.dice("scenes")
        self._labels = count()

    def play(self, move: Move, line: Line) -> None:
        """An order is about to be sent."""
        families = [family for family in self._families if key_of(*family) in move.section]
        if not families or self._dice.random() > _PLAYED:
            return
        family = self._dice.choice(families)
        lets_old_lines_be = move.kind in (
            *(MoveKind.FLIP_OFF, MoveKind.HELP_MEMORY, MoveKind.MERGE),
            *(MoveKind.PARTITION, MoveKind.RECUT, MoveKind.GATHER),
        )
        if move.kind is MoveKind.SUSPEND or (lets_old_lines_be and self._dice.random() < 0.5):
            self._start(self._while_suspended(family, line))
        else:
            self._start(self._race(family))

    def _start(self, scene: Coroutine[Any, Any, None]) -> None:
        operator = self._cluster.processes["operator"].life
        assert operator is not None
        self._world.loop.start(operator, scene)

    def _act(self, act: Any) -> None:
        """Some client does this, if it is up."""
        up = [one for one in self._clients if one.process.is_up and one.space is not None]
        if up:
            client = self._dice.choice(up)
            assert client.process.life is not None
            self._world.loop.start(client.process.life, act(client))

    async def _race(self, family: Family) -> None:
        """Commands and a watch in the middle of the hand-over; devices that come when it is over."""
        dice = self._dice
        for at_s in sorted(dice.uniform(0.0, _RACE_S) for _ in range(dice.randint(1, 4))):
            await asyncio.sleep(at_s / 2)
            self._act(lambda client: client.command(client.space, self._command(family)))
        if dice.random() < 0.5:
            for_s = dice.choice((FOR_EVER, dice.uniform(0.0, 0.5)))
            self._act(lambda client: self._watch(client, family, for_s))
        await asyncio.sleep(dice.uniform(0.5, 4.0))
        for _ in range(dice.randint(1, 3)):
            self._act(lambda client: self._serve(client, family))

    async def _while_suspended(self, family: Family, line: Line) -> None:
        """Who has not heard of it still sends to the suspended, or to who went off; others begin to watch."""
        dice = self._dice
        self._act(lambda client: self._with_old_line(client, family, line))
        await asyncio.sleep(dice.uniform(0.2, 2.0))
        self._act(lambda client: self._watch(client, family))

    # --- what a client does --------------------------------------------------------------------------

    async def _with_old_line(self, client: Client, family: Family, line: Line) -> None:
        for _ in range(4):
            await asyncio.sleep(self._dice.uniform(0.0, 0.5))
            assert client.space is not None
            client.set_back(client.space, [line])
            event = {
                "subject": family.subject,
                "type": family.type,
                "address": "north-1",
                "position": None,
                "data": {"kg": 5},
                "time": datetime_of(self._world.now_us),
                "lifetime_s": 3600.0,
            }
            await client.emit(client.space, Emission(0.0, (event,), many=False))

    def _command(self, family: Family) -> Commanding:
        return Commanding(0.0, family, {"address": prefix("room")}, {"on": True}, 3600.0)

    async def _watch(self, client: Client, family: Family, for_s: float = FOR_EVER) -> None:
        label = f"x{next(self._labels)}"
        span = (0.0, self._world.now_s + for_s)
        plan = Watching(label, family, {}, {}, False, 0.0, (span,))
        assert client.process.life is not None and client.space is not None
        await client._watch(client.space, plan, client.process.life)

    async def _serve(self, client: Client, family: Family) -> None:
        label = f"y{next(self._labels)}"
        plan = Serving(label, family, f"room-{label}", None, {}, False, ((0.0, FOR_EVER),))
        assert client.process.life is not None and client.space is not None
        await client._serve(client.space, plan, client.process.life)
