"""A reader with a drop policy that comes and goes, while servers crash and its section is moved: law 9, to the last event.

In the calm nobody else disturbs it, so the sum is exact: what it is given and what is declared to it make up everything
that was registered; what arrived while it was connected is given to it, however slow it is; and what joins by
`respond_within` is decided by the hash of EF and event alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.virtual.coverage import DRAINED_WHILE_AWAY, DROPPED
from tests.virtual.plan import Emission
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.scenes.sending_off import SendingOff
from utuple.client.receiving.delivery import Delivery
from utuple.client.receiving.drops import Drop
from utuple.client.receiving.watch import Watch
from utuple.cluster.move import Move
from utuple.model.terms import (
    DropPolicy,
    expire,
    latest_per_address,
    newest,
    oldest,
    place_of,
    respond_within,
)
from utuple.model.utuple import Family, datetime_of

POLICIES = (
    newest(3),
    oldest(5),
    latest_per_address(),
    expire(1.0),
    respond_within(0.45),
    respond_within(0.3, share=0.6),
)
ADDRESS = "comes and goes"
"""Nobody else's, as in `newcomers`."""
_VISITS, _VISIT_S, _AWAY_S = 7, 0.4, 0.8
"""By then a server has enough samples of its habits."""
_WORK_S = 0.05
_TAKE_S = 1.0
_ENOUGH_S = 4.0
"""What comes twice would come by then, too."""
_MISSED, _LIVE = 24, 4
_CRASH_S = 0.7
MOVED = ("nothing", "off while away", "drained while away", "drained at the return")
"""What becomes of the server that has what arrives first while the reader is away."""
_OFTEN = (1, 1, 1, 3)
"""The last has the most ways to go wrong."""
_BACK_S = 25.0
"""A broken connection may be noticed by a keepalive only."""


class Visitor:
    def __init__(self, cluster: Cluster, reader: Client, other: Client, family: Family) -> None:
        self._cluster, self._world = cluster, cluster.world
        self._reader, self._other, self._family = reader, other, family
        self._dice = cluster.world.dice("coming and going")
        self._policy: DropPolicy = self._dice.choice(POLICIES)
        self._moved = self._dice.choices(MOVED, _OFTEN)[0]
        self._sending_off = SendingOff(cluster, family, self._dice)
        self._since_us = cluster.world.now_us
        self._sent: list[int] = []
        self._got: dict[int, Delivery] = {}
        self._drops: list[Drop] = []

    def _watch(self) -> Watch:
        assert self._reader.space is not None
        return self._reader.space.watch(
            **self._family._asdict(),
            since=datetime_of(self._since_us),
            where={"visit": bool},
            reader=ADDRESS,
            absent=self._policy,
            on_dropped=self._drops.append,
        )

    async def _emit(self, count: int) -> list[int]:
        life, space = self._other.process.life, self._other.space
        assert life is not None and space is not None
        before = self._world.next_number()
        for number in range(count):
            event = {
                **self._family._asdict(),
                "address": f"{ADDRESS} {number % 3}",
                "position": None,
                "data": {"kg": 1, "visit": True},
                "time": datetime_of(self._world.now_us),
                "lifetime_s": 3600.0,
            }
            emitting = self._other.emit(space, Emission(0.0, (event,), many=False))
            if not await self._world.loop.start(life, emitting):
                self._world.bug("an event is emitted in vain, though all is healed")
        sent = list(range(before + 1, self._world.next_number()))
        self._sent += sent
        return sent

    @property
    def _is_accounted(self) -> bool:
        return len(self._got) + sum(drop.count for drop in self._drops) >= len(self._sent)

    async def _take(self, watch: Watch, most: int, wait_s: float = _TAKE_S) -> int:
        """How many came, until nothing does for so long."""
        for taken in range(most):
            for event in await watch.take(1, timeout_s=wait_s):
                await asyncio.sleep(_WORK_S)
                number = event.data["n"]
                if number in self._got:
                    self._world.bug(f"{number} comes again, though it was acknowledged")
                self._got[number] = event
                await event.ack()
                break
            else:
                return taken
        return most

    async def run(self) -> None:
        watch = self._watch()
        if self._policy.kind == "respond_within":
            for _ in range(_VISITS):
                watch = await self._watch().open()
                await self._emit(2)
                await self._take(watch, 8, _VISIT_S)
                await watch.close()
                await self._emit(2)
                await asyncio.sleep(_AWAY_S)
        watch = await self._watch().open()
        await self._take(watch, 100)
        await watch.close()
        missed = await self._emit(_MISSED // 2)
        giving = None
        if self._moved != "nothing":
            giving = await self._sending_off.send_off()
        if giving is not None and self._moved == "drained while away":
            await self._drain(giving)
        await self._crash()
        await self._cluster.at_rest()
        missed += await self._emit(_MISSED // 2)
        draining = None
        if giving is not None and self._moved == "drained at the return":
            draining = asyncio.create_task(self._drain(giving))
            await asyncio.sleep(self._dice.uniform(0.0, 0.3))
        watch = await self._watch().open()
        await self._take(watch, 2 if draining is None else self._dice.randint(1, 12))
        if draining is not None:
            await draining
        live = await self._emit(_LIVE)
        await self._crash()
        silent_s = 0.0
        while silent_s < 2 * _BACK_S and not (self._is_accounted and silent_s >= _ENOUGH_S):
            silent_s = 0.0 if await self._take(watch, 200) else silent_s + _TAKE_S
        self._check(missed, live)
        await watch.cancel()

    async def _drain(self, move: Move) -> None:
        self._world.count(DRAINED_WHILE_AWAY)
        await self._sending_off.order(move)

    async def _crash(self) -> None:
        for name in self._cluster.servers:
            self._cluster.crash(name, _CRASH_S)
        await asyncio.sleep(2 * _CRASH_S)

    def _check(self, missed: Sequence[int], live: Sequence[int]) -> None:
        declared = sum(drop.count for drop in self._drops)
        got, sent = set(self._got), set(self._sent)
        said = (
            f"{self._policy}, {self._moved}: {len(got)} given + {declared} declared of {len(sent)}"
        )
        if declared:
            self._world.count(DROPPED)
        if len(got) + declared != len(sent):
            self._world.bug(f"law 9: {said}")
        if not_live := set(live) - got:
            self._world.bug(f"law 9: {said}; {len(not_live)} were dropped while it was connected")
        if self._policy.kind == "respond_within":
            self._check_hash(missed)

    def _check_hash(self, missed: Sequence[int]) -> None:
        """Those of the last absence that were given are those that its ζ lets join. Each server has its own ζ; it may have
        said several at once, and the largest is good enough."""
        zetas: dict[str, float] = {}
        for drop in self._drops:
            zetas[drop.server] = max(zetas.get(drop.server, 0.0), drop.zeta or 0.0)
        for number in missed:
            event = self._got.get(number)
            zeta = zetas.get(event._chunk.origin) if event is not None else None
            if event is not None and zeta is not None:
                place = place_of(self._watch()._utuple.id, event.id.bytes)
                if place >= zeta:
                    self._world.bug(f"law 9: {number} joins, though it lies at {place:.3f}")


async def coming_and_going(cluster: Cluster, reader: Client, other: Client, family: Family) -> None:
    await Visitor(cluster, reader, other, family).run()
