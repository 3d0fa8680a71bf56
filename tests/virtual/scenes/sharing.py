"""Two programs that share a reader: one of them is cut off, all servers crash, and one event is refused whenever it comes.

Every event is acknowledged by one of the two, or parked; what a program has acknowledged does not come to it again; and the
event that nobody wants keeps nothing from anybody. At last a third program takes everything and settles nothing: all of it
is parked after one attempt, more than it is given at a time.
"""

from __future__ import annotations

import asyncio

from tests.virtual.coverage import PARKED, PARKED_DRAINED
from tests.virtual.plan import Emission
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.scenes.sending_off import SendingOff
from tests.virtual.scenes.waiting import until
from utuple.client.receiving.watch import Watch
from utuple.errors import Closed
from utuple.model.utuple import Family, datetime_of

ADDRESS = "shared work"
ATTEMPTS, WITHIN_S = 3, 4.0
NEGLECTED, NEGLECTED_S = "neglects its work", 0.5
_EVENTS, _UNWANTED = 24, 5
_FLEETING = 48
"""Events of lifetime 0, more than the programs are given before they take any: they must not be in the way of the others."""
_PARKED = 2
"""Of those that are unwanted there is one each time."""
_BACK_S = 25.0
"""A broken connection may be noticed by a keepalive only."""


class Workers:
    def __init__(self, cluster: Cluster, one: Client, other: Client, family: Family) -> None:
        self._cluster, self._world, self._family = cluster, cluster.world, family
        self._clients = (one, other)
        self._dice = cluster.world.dice("sharing")
        self._sticky = self._dice.random() < 0.5
        self._since_us = cluster.world.now_us
        self._done: list[set[int]] = [set(), set()]
        self._sent: list[int] = []
        self._is_holding = True
        """The second program takes, and acknowledges nothing."""

    def _watch(self, number: int) -> Watch:
        space = self._clients[number].space
        assert space is not None
        return space.watch(
            **self._family._asdict(),
            since=datetime_of(self._since_us),
            where={"work": bool},
            reader=ADDRESS,
            share=True,
            sticky=self._sticky,
            attempts=ATTEMPTS,
            ack_within_s=WITHIN_S,
        )

    async def run(self) -> None:
        lives = [client.process.life for client in self._clients]
        watches = [self._watch(number) for number in (0, 1)]
        tasks = []
        for number, (life, watch) in enumerate(zip(lives, watches, strict=True)):
            assert life is not None
            await self._world.loop.start(life, watch.open())
            tasks.append(self._world.loop.start(life, self._work(number, watch)))
        await self._pass_by()
        await self._emit(_EVENTS)
        await asyncio.sleep(1.0)
        self._cut(blocked=True)
        await self._emit(_EVENTS)
        for name in self._cluster.servers if self._dice.random() < 0.5 else ():
            self._cluster.crash(name, 0.7)
        most_s = _BACK_S + ATTEMPTS * (WITHIN_S + 5.0)
        await until(lambda: not self._missing and self._parked >= _PARKED, most_s)
        self._check()
        self._is_holding = False
        self._cut(blocked=False)
        await asyncio.sleep(_BACK_S)
        for life, watch in zip(lives, watches, strict=True):
            assert life is not None
            await self._world.loop.start(life, watch.cancel())
        await asyncio.gather(*tasks)
        await self._neglect()

    async def _neglect(self) -> None:
        life, space = self._clients[0].process.life, self._clients[0].space
        assert life is not None and space is not None
        asked = {**self._family._asdict(), "since": datetime_of(self._since_us)}
        where, every = {"work": bool}, 2 * _EVENTS
        watch = space.watch(
            **asked, where=where, reader=NEGLECTED, attempts=1, ack_within_s=NEGLECTED_S
        )

        async def take() -> None:
            while await watch.take(5, timeout_s=2 * _BACK_S):
                pass

        await self._world.loop.start(life, watch.open())
        taking = self._world.loop.start(life, take())
        await until(lambda: self._parked >= every, 2 * _BACK_S)
        if self._parked != every:
            self._world.bug(f"{self._parked} are parked of {every} that nobody settled")
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        if self._dice.random() < 0.5 and self._parked == every:
            await self._world.loop.start(life, watch.close())
            await self._drain(every)
            watch = space.watch(
                **asked, where=where, reader=NEGLECTED, attempts=1, ack_within_s=NEGLECTED_S
            )
            await self._world.loop.start(life, watch.open())
        await self._world.loop.start(life, watch.cancel())

    async def _drain(self, every: int) -> None:
        """What is parked where it was registered is parked at the heir, and can be released there."""
        sending_off = SendingOff(self._cluster, self._family, self._dice)
        at = max(self._cluster.servers, key=lambda name: sum(self._parked_at(name)))
        drain = await sending_off.send_off(at)
        if drain is None:
            return
        await sending_off.order(drain)
        await until(lambda: not sum(self._parked_at(at)) and self._parked == every, _BACK_S)
        if self._parked != every:
            self._world.bug(f"{self._parked} are parked of {every} after a drain of {at}")
        elif not sum(self._parked_at(at)):
            self._world.count(PARKED_DRAINED)

    def _cut(self, *, blocked: bool) -> None:
        network, name = self._cluster.network, self._clients[1].process.name
        servers = list(self._cluster.servers)
        if blocked:
            network.block([name], servers, both=True)
            for server in servers:
                network.reset(name, server)
        else:
            network.unblock([name], servers, both=True)

    async def _work(self, number: int, watch: Watch) -> None:
        try:
            async for event in watch:
                at = event.data["n"]
                self._world.trace("worker", number, "gets", at, "after", event.attempts)
                if at in self._done[number]:
                    self._world.bug(f"{at} comes again to the program that acknowledged it")
                if event.data["work"] is False:
                    await event.nack(after_s=0.1)
                elif number == 0 or not self._is_holding:
                    self._done[number].add(at)
                    await event.ack()
        except Closed:
            pass

    async def _pass_by(self) -> None:
        await self._register(*(self._event(number, True, 0.0) for number in range(_FLEETING)))

    async def _emit(self, count: int) -> None:
        for number in range(count):
            before = self._world.next_number()
            await self._register(self._event(number, number != _UNWANTED, 3600.0))
            if number != _UNWANTED:
                self._sent.append(before + 1)

    def _event(self, number: int, work: bool, lifetime_s: float) -> dict[str, object]:
        return {
            **self._family._asdict(),
            "address": f"{ADDRESS} {number}",
            "position": None,
            "data": {"kg": 1, "work": work},
            "time": datetime_of(self._world.now_us),
            "lifetime_s": lifetime_s,
        }

    async def _register(self, *events: dict[str, object]) -> None:
        life, space = self._clients[0].process.life, self._clients[0].space
        assert life is not None and space is not None
        emission = Emission(0.0, events, many=len(events) > 1)
        if not await self._world.loop.start(life, self._clients[0].emit(space, emission)):
            self._world.bug("an event is emitted in vain, though all is healed")

    def _check(self) -> None:
        if missing := self._missing:
            self._world.bug(
                f"{len(missing)} of {len(self._sent)} shared events were lost: {missing}"
            )
        if parked := self._parked:
            self._world.count(PARKED)
        if parked < _PARKED:
            self._world.bug(f"{parked} events are parked of the {_PARKED} that nobody wants")

    @property
    def _missing(self) -> set[int]:
        return set(self._sent) - self._done[0] - self._done[1]

    @property
    def _parked(self) -> int:
        return sum(sum(self._parked_at(name)) for name in self._cluster.servers)

    def _parked_at(self, server: str) -> list[int]:
        engine = self._cluster.engine(server)
        seats = engine.delivering.seats if engine is not None else ()
        return [len(pool.ledger.parked) for pool in seats]


async def sharing(cluster: Cluster, reader: Client, other: Client, family: Family) -> None:
    await Workers(cluster, reader, other, family).run()
