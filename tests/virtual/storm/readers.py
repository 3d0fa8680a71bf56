"""Readers of one name in several programs, spaces and openings; openings that are cancelled; lifetimes of fractions of a
second; clocks that are set.

In the storm whoever has the dice opens a shared reader, wherever it is open already, and cancels some openings on the
way. In the calm the same is done on purpose, and every promise of an opening is held: the one before is told that it was
replaced, what it acknowledged does not come again, closing it silences nobody, nothing is left attached of what was
cancelled, and no clock ends a reader that is connected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.virtual.coverage import OPENED_TWICE, OPENING_CANCELLED
from tests.virtual.plan import BEGIN_S, STORM_S, Emission
from tests.virtual.programs.clients import Client, id_of
from tests.virtual.programs.cluster import FARTHEST_S, Cluster
from tests.virtual.world.loop import Life
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.space import Space
from utuple.errors import Closed, NotRegistered, OutcomeUnknown, ReaderReplaced, UTupleError
from utuple.model.utuple import Family, datetime_of
from utuple.runtime.clock import now_us

SHARED = 2
"""Readers that several programs open."""
OPENINGS = 6
"""Of each, in a storm."""
GHOSTS = 8
"""Openings that are only there to be cancelled, in a storm and again in the calm."""
LIFETIMES_S = (0.1, 0.5, 1.0, 86_400.0)
_SOON_S = (0.0, 0.001, 0.01, 0.1, 1.0)
_WAIT_S = 8.0
"""In the calm: a stream that was broken just before comes back within a second or two, and a reader that has to catch up is
searched for twice, two seconds each where searches are slow."""
_PAUSE_S = 1.0


@dataclass(eq=False)
class _Opening:
    life: Life
    watch: Deliveries
    number: int
    """Of the label's lives, in the history."""

    @property
    def is_living(self) -> bool:
        return self.life.is_alive and not self.watch._formal.is_over


class Readers:
    def __init__(self, cluster: Cluster, clients: list[Client], families: tuple[Family, ...]):
        self._cluster = cluster
        self._world = cluster.world
        self._history = cluster.world.history
        self._clients = clients
        self._families = families
        self._dice = cluster.world.dice("readers")
        self._openings: dict[str, list[_Opening]] = {}
        self._lifetime_s = {f"shared {n}": self._dice.choice(LIFETIMES_S) for n in range(SHARED)}

    # --- in the storm --------------------------------------------------------------------------------

    def begin(self) -> None:
        for label in self._lifetime_s:
            for _ in range(OPENINGS):
                self._at_some_time(lambda label=label: self._by_anyone(label))  # type: ignore[misc]
        for _ in range(GHOSTS):
            self._at_some_time(self._ghost)

    def _at_some_time(self, act: Callable[[], None]) -> None:
        at_s = self._dice.uniform(BEGIN_S, BEGIN_S + STORM_S)
        self._world.loop.later(max(0.0, at_s - self._world.now_s), act)

    def settle(self) -> None:
        """Each is open once more, and stays so."""
        for label in self._lifetime_s:
            self._by_anyone(label)

    def _by_anyone(self, label: str) -> None:
        client = self._dice.choice(self._clients)
        life, space = client.life, client.space
        if life is not None and life.is_alive and space is not None:
            self._world.loop.start(life, self._read(label, space, life))
        else:
            self._world.loop.later(_PAUSE_S, self._by_anyone, label)

    def _ghost(self) -> None:
        client = self._dice.choice(self._clients)
        life, space = client.life, client.space
        if life is not None and life.is_alive and space is not None:
            self._world.loop.start(life, self._haunt(space))

    async def _haunt(self, space: Space) -> bytes:
        """The id of a formal that nobody wants any more."""
        deliveries = self._unnamed(space)
        await self._cancelled(deliveries)
        return deliveries._utuple.id

    def _unnamed(self, space: Space) -> Deliveries:
        asked: dict[str, Any] = self._dice.choice(self._families)._asdict()
        if self._dice.random() < 0.5:
            return space.watch(**asked)
        return space.serve(**asked, address=f"ghost {self._dice.random()}")

    async def _cancelled(self, deliveries: Deliveries) -> None:
        """Its opening is cancelled some time after it began; if that was too late, it is closed."""
        opening = asyncio.create_task(deliveries.open())
        soon_s = self._dice.choice(_SOON_S) * self._dice.random()
        for _ in range(self._dice.randrange(20) if not soon_s else 0):
            await asyncio.sleep(0)
        await asyncio.sleep(soon_s)
        if opening.cancel():
            self._world.count(OPENING_CANCELLED)
        try:
            await opening
        except (asyncio.CancelledError, UTupleError):
            return
        await deliveries.close()

    async def _read(self, label: str, space: Space, life: Life) -> None:
        """Opened, after an opening that was cancelled; until it is replaced or its program dies."""
        if self._dice.random() < 0.5:
            await self._cancelled(self._shared(label, space))
        asked_us = self._world.now_us
        while True:
            watch = self._shared(label, space)
            try:
                await watch.open()
                break
            except (NotRegistered, OutcomeUnknown):
                await asyncio.sleep(_PAUSE_S)
            except ReaderReplaced:
                return  # while it was being opened
        self._world.trace(life, "opens", label)
        number = self._history.watch_opened(label, watch._utuple, asked_us, self._world.now_us)
        one = _Opening(life, watch, number)
        before = self._openings.setdefault(label, [])
        if any(other.is_living for other in before):
            self._world.count(OPENED_TWICE)
        before.append(one)
        await self._take(label, one)

    def _shared(self, label: str, space: Space) -> Deliveries:
        asked: dict[str, Any] = self._families[0]._asdict()
        return space.watch(**asked, reader=label, lifetime_s=self._lifetime_s[label])

    async def _take(self, label: str, one: _Opening) -> None:
        try:
            async for event in one.watch:
                id_ = id_of(event.data["n"])
                self._world.trace(one.life, label, "gets", event.data["n"])
                self._history.delivered(label, id_, self._world.now_us, one.number)
                if self._dice.random() < 0.7:
                    await event.ack()
        except ReaderReplaced:
            self._world.trace(one.life, label, "is replaced")
            await one.watch.close()
        except UTupleError as error:
            self._world.bug(f"{label} failed", error)

    # --- in the calm ---------------------------------------------------------------------------------

    async def probe(self) -> None:
        """By the first client, which lives."""
        client, own = self._clients[0], self._clients[0].space
        assert own is not None
        await self._opened_twice(client, client)
        await self._opened_twice(client, self._clients[-1])
        await self._clock_set(own)
        ghosts = await asyncio.gather(*(self._haunt(own) for _ in range(GHOSTS)))
        await asyncio.sleep(_WAIT_S)
        self._check_shared()
        self._check_left()
        await self._check_undone(ghosts)

    async def _opened(self, client: Client, **asked: Any) -> Deliveries:
        assert client.space is not None and client.life is not None
        watch: Deliveries = client.space.watch(**asked)
        return await self._world.loop.start(client.life, watch.open())

    async def _opened_twice(self, first: Client, second: Client) -> None:
        family = self._families[0]
        where = "in one space" if first is second else "in two programs"
        asked = {**family._asdict(), "reader": f"twice {where}"}
        asked["since"] = datetime_of(self._world.now_us)
        old = await self._opened(first, **asked)
        await self._emit(3)
        done = []
        for _ in range(2):
            try:
                event = await asyncio.wait_for(anext(old), _WAIT_S)
            except TimeoutError:
                self._world.bug(f"opened twice {where}: the first is silent")
                return await old.cancel()
            done.append(event.id)
            await event.ack()
        if first is not second:
            await asyncio.sleep(_WAIT_S)  # acknowledgements travel in the background
        waiting = asyncio.create_task(self._ended(old))
        new = await self._opened(second, **asked)
        if not await waiting:
            self._world.bug(f"opened twice {where}: the first is not told that it was replaced")
        await old.close()
        await self._emit(1)
        try:
            found = [(await asyncio.wait_for(anext(new), _WAIT_S)).id for _ in range(2)]
            if set(found) & set(done):
                self._world.bug(f"opened twice {where}: what was acknowledged came again")
        except (TimeoutError, Closed):
            self._world.bug(f"opened twice {where}: the second is silent")
        await new.cancel()

    async def _ended(self, watch: Deliveries) -> bool:
        try:
            async with asyncio.timeout(2 * _WAIT_S):
                while True:
                    await anext(watch)
        except ReaderReplaced:
            return True
        except TimeoutError:
            return False

    async def _clock_set(self, space: Space) -> None:
        """A reader without a name, and one with a lifetime that has long passed, are given what comes while clocks are
        set as far as they may be."""
        family = self._families[0]
        asked = {**family._asdict(), "since": datetime_of(self._world.now_us + round(1e6))}
        watches = [
            await space.watch(**asked).open(),
            await space.watch(**asked, reader="brief", lifetime_s=0.1).open(),
        ]
        servers = [self._cluster.processes[name] for name in self._cluster.servers]
        for ahead_s in (-FARTHEST_S, FARTHEST_S):
            for process in servers:
                process.clock.ahead_s = ahead_s
            await asyncio.sleep(_PAUSE_S)
            await self._emit(1, lifetime_s=0.0)
            for watch in watches:
                try:
                    await asyncio.wait_for(anext(watch), _WAIT_S)
                except TimeoutError:
                    self._world.bug(f"clocks set to {ahead_s:+.0f} s: {watch!r} is silent")
        for watch in watches:
            await watch.cancel()

    async def _emit(self, count: int, lifetime_s: float = 3600.0) -> None:
        family, client = self._families[0], self._clients[0]
        event = {
            "subject": family.subject,
            "type": family.type,
            "address": "north-1",
            "position": None,
            "data": {"kg": 5},
            "time": datetime_of(self._world.now_us + round(2e6)),
            "lifetime_s": lifetime_s,
        }
        assert client.space is not None
        for _ in range(count):
            if not await client.emit(client.space, Emission(0.0, (event,), many=False)):
                self._world.bug("a reader's event is emitted in vain, though all is healed")

    def _check_shared(self) -> None:
        for label, openings in self._openings.items():
            living = [one for one in openings if one.is_living]
            if len(living) != 1:
                self._world.bug(f"{label} has {len(living)} readers of {len(openings)}")

    def _check_left(self) -> None:
        """What is attached at the servers, or held by the clients, is what applications have open."""
        labels = self._history.labels.values()
        wanted = {label.formal.id for label in labels if label.closed_us is None}
        for name in self._cluster.servers:
            delivering = self._cluster.engine(name).delivering
            attached = {one.id for one in (*delivering.cursors, *delivering.devices)}
            self._left(f"attached at {name}", attached - wanted)
        for client in self._clients:
            assert client.space is not None
            held = {one._utuple.id for one in client.space._open}
            self._left(f"held by {client.process.name}", held - wanted)
            self._left(
                f"open in {client.process.name}", set(client.space._parts.sessions.open) - wanted
            )

    async def _check_undone(self, ghosts: list[bytes]) -> None:
        """Registrations and goodbyes overtake each other: no EF or CF stays registered of what was cancelled in the calm."""
        for name in self._cluster.servers:
            engine = self._cluster.engine(name)
            kept = set(ghosts).intersection(engine.writer.templates)
            async for batch in engine.store.devices(now_us(), ghosts):
                kept.update(batch.columns.each_id())
            self._left(f"registered at {name}", kept)
        for name in self._cluster.serving_scas:
            program = self._cluster.processes[name].sca
            if program is not None:
                found = {id_ for id_ in ghosts if program.core.index.get(id_, now_us())}
                self._left(f"known to {name}", found)

    def _left(self, where: str, ids: set[bytes]) -> None:
        if ids:
            self._world.bug(f"{len(ids)} formals are still {where}, and nobody reads them")
