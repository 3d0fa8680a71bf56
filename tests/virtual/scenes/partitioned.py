"""A line is partitioned, loses an owner, and is gathered again, with watches that overlap some of its segments only: opened
before it was partitioned and after. In the calm, so that every event is held to law 2; the storm has such moves among all others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.virtual.coverage import PARTITIONED, RECUT
from tests.virtual.plan import Emission
from tests.virtual.programs.clients import Client
from tests.virtual.programs.cluster import Cluster
from tests.virtual.programs.servers import address_of
from utuple.client.receiving.deliveries import Deliveries
from utuple.cluster.layout import NO_LAYOUT, Axis, Layout
from utuple.cluster.line import Line
from utuple.cluster.move import Move, MoveKind
from utuple.errors import UTupleError
from utuple.model.condition import below, prefix
from utuple.model.key import key_of
from utuple.model.utuple import Family, datetime_of
from utuple.wire.cluster import move_to_wire

POINTS = [(place, kg) for place in ("a", "z") for kg in (1, 9)]
"""Of an event: one in each part that the layout cuts."""
KEPT = "kept"
SHORT_S = 2.0
_ROUNDS = 8
_TRIES, _TRY_S = 12, 2.0
_PRUNED_TRIES = 60
"""What is short-lived is kept for a minute longer, and a home asks every ten seconds."""
_HEARD_S = 5.0
_ALL_CAME_S = 25.0


@dataclass(frozen=True)
class _Kind:
    """A watch, and the points whose events it wants."""

    asked: Mapping[str, Any]
    wants: Callable[[str, int], bool]


KINDS = {
    "all": _Kind({}, lambda place, kg: True),
    "light": _Kind({"where": {"kg": below(5)}}, lambda place, kg: kg < 5),
    "at a": _Kind({"address": prefix("cut a")}, lambda place, kg: place == "a"),
    "light at a": _Kind(
        {"address": prefix("cut a"), "where": {"kg": below(5)}},
        lambda place, kg: place == "a" and kg < 5,
    ),
}


async def partitioned(cluster: Cluster, client: Client, other: Client, family: Family) -> None:
    scene = Scene(cluster, client, other, family)
    if len(cluster.servers) < 3 or not await scene.grows():
        return
    with scene.spread():
        await scene.watch("before")
        await scene.emit()
        async with scene.reader_away() as short:
            await scene.emit(short, SHORT_S)
            is_partitioned = await scene.is_partitioned()
            await asyncio.sleep(2 * SHORT_S)
        if is_partitioned:
            cluster.world.count(PARTITIONED)
            await scene.watch("after")
            await scene.emit()
            await scene.all_came()
            for changed in (scene.is_recut, scene.owner_goes_off, scene.is_gathered):
                async with scene.reader_away() as short:
                    await changed()
                    await scene.emit()
                    await scene.emit(short, SHORT_S)
                    await asyncio.sleep(2 * SHORT_S)
    await scene.close()


class Scene:
    def __init__(self, cluster: Cluster, client: Client, other: Client, family: Family) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._client = client
        self._other = other
        self._family = family
        self._key = key_of(*family)
        self._began_us = cluster.world.now_us
        self._open: list[tuple[str, str, Deliveries, asyncio.Task[None]]] = []

    # --- events and watches --------------------------------------------------------------------------

    @contextmanager
    def spread(self) -> Iterator[None]:
        """Each event goes to any of the members that may take it, so that all of them are tried, and not only the fastest."""
        assert self._other.space is not None
        registrar = self._other.space._parts.registrar
        usual, registrar._config = registrar._config, replace(registrar._config, choice="random")
        yield
        registrar._config = usual

    async def emit(self, name: str = KEPT, lifetime_s: float = 3600.0) -> None:
        life = self._other.process.life
        assert life is not None
        rounds = (self._emit_round(name, lifetime_s) for _ in range(_ROUNDS))
        await asyncio.gather(*(self._world.loop.start(life, one) for one in rounds))

    async def _emit_round(self, name: str, lifetime_s: float) -> None:
        assert self._other.space is not None
        for place, kg in POINTS:
            event = {
                **self._family._asdict(),
                "address": self._address(name, place, kg),
                "position": None,
                "data": {"kg": kg},
                "time": datetime_of(self._world.now_us),
                "lifetime_s": lifetime_s,
            }
            if not await self._other.emit(self._other.space, Emission(0.0, (event,), many=True)):
                self._world.bug("an event of a partitioned line is emitted in vain")

    def _address(self, name: str, place: str, kg: int) -> str:
        """Nobody else's, as in `newcomers`."""
        return f"cut {place} {kg} {name} {self._family.type}"

    async def watch(self, when: str) -> None:
        self._open += [
            await self._watched(kind, f"{self._family.type} partitioned, {kind}, {when}")
            for kind in KINDS
        ]

    async def _watched(
        self, kind: str, label: str, reader: str | None = None
    ) -> tuple[str, str, Deliveries, asyncio.Task[None]]:
        space, asked_us = self._client.space, self._world.now_us
        assert space is not None
        asked = {**self._family._asdict(), **KINDS[kind].asked, "reader": reader}
        watch = await space.watch(**asked, since=datetime_of(self._began_us)).open()
        self._world.history.watch_opened(label, watch._utuple, asked_us, self._world.now_us)
        return label, kind, watch, asyncio.create_task(self._client._take(watch, label, 1.0))

    @asynccontextmanager
    async def reader_away(self) -> AsyncIterator[str]:
        """A reader is away for a while, and back. What came meanwhile it gets though
        that has expired: it was matched where it came."""
        kind, label = "light at a", f"{self._family.type} partitioned, away {self._line.epoch}"
        short = f"short {self._line.epoch}"
        for is_back in (False, True):
            if is_back:
                yield short
            one = await self._watched(kind, label, reader=label)
            await asyncio.sleep(_ALL_CAME_S)
            if is_back:
                self._check(label, kind, (KEPT, short))
            await self._close(one)

    async def all_came(self) -> None:
        await asyncio.sleep(_ALL_CAME_S)
        for label, kind, _, _ in self._open:
            self._check(label, kind, (KEPT,))

    def _check(self, label: str, kind: str, names: Sequence[str]) -> None:
        wanted = [point for point in POINTS if KINDS[kind].wants(*point)]
        places = [self._address(name, *point) for name in names for point in wanted]
        sent = set().union(*map(self._world.sent_from, places))
        if missing := len(sent - self._world.history.labels[label].ids):
            self._world.bug(f"{label} misses {missing} of {len(sent)} events of a partitioned line")

    async def close(self) -> None:
        await self.all_came()
        for one in self._open:
            await self._close(one)

    async def _close(self, one: tuple[str, str, Deliveries, asyncio.Task[None]]) -> None:
        label, _, watch, taking = one
        self._world.history.watch_closed(label, self._world.now_us)
        await watch.close()
        await taking

    # --- the line ------------------------------------------------------------------------------------

    @property
    def _line(self) -> Line:
        return self._cluster.line_of(self._key)

    async def grows(self) -> bool:
        """Until three are on, the home among them."""

        def helped(line: Line) -> Move:
            if line.home not in line.accumulatable:
                return Move(MoveKind.FLIP_ON, line.section, line.epoch, line.home)
            off = [one.name for one in line.members if not one.accumulatable]
            others = (name for name in self._cluster.servers if line.member(name) is None)
            helper = next(iter(off), None) or next(others)
            return Move(MoveKind.HELP_PROCESSING, line.section, line.epoch, line.home, helper)

        return await self._until(
            lambda line: line.home in line.accumulatable and len(line.accumulatable) >= 3, helped
        )

    async def is_partitioned(self) -> bool:
        """On both axes one owns the first half and one the second, so that each keeps what the other does not."""

        def cut(line: Line) -> Move:
            first, second = [name for name in line.accumulatable if name != line.home][:2]
            owners = ((first, line.home), (second, line.home))
            axes = (Axis("data.kg", (5,), owners), Axis("address", ("cut m",), owners))
            return _at_home(MoveKind.PARTITION, line, Layout(axes))

        return await self._until(lambda line: bool(line.layout.axes), cut)

    async def is_recut(self) -> None:
        """The owners of the two halves change places on every axis: each learns what the other kept, one after the other."""
        others = sorted(self._line.layout.owners - {self._line.home})
        if len(others) < 2:  # a move of the storm was in between
            return
        first, second = others[:2]
        place = {first: second, second: first}
        axes = (
            replace(
                axis,
                owners=tuple(tuple(place.get(one, one) for one in own) for own in axis.owners),
            )
            for axis in self._line.layout.axes
        )
        after = Layout(tuple(axes))

        def cut_anew(line: Line) -> Move:
            learner, layout = line.layout.recuts(after, line.home)[0]
            return Move(MoveKind.RECUT, line.section, line.epoch, line.home, learner, layout=layout)

        def is_over(line: Line) -> bool:
            stays = {*line.accumulatable} >= {first, second} and bool(line.layout.axes)
            return line.layout == after or not stays

        if await self._until(is_over, cut_anew) and self._line.layout == after:
            self._world.count(RECUT)

    async def is_pruned(self) -> bool:
        """The home sees to that by itself: nothing is stored in this section but what this scene has emitted."""
        for _ in range(_PRUNED_TRIES):
            if not self._line.past:
                break
            await asyncio.sleep(_TRY_S)
        return bool(self._line.layout.axes) and not self._line.past

    async def all_come_on(self) -> None:
        def on(line: Line) -> Move:
            off = next(one.name for one in line.members if not one.accumulatable)
            return Move(MoveKind.FLIP_ON, line.section, line.epoch, off)

        await self._until(lambda line: all(one.accumulatable for one in line.members), on)

    async def owner_goes_off(self) -> None:
        def off(line: Line) -> Move:
            owner = line.layout.axes[0].owners[0][0]
            return Move(MoveKind.FLIP_OFF, line.section, line.epoch, owner)

        own = {*self._line.accumulatable}
        await self._until(lambda line: own != {*line.accumulatable} or not line.layout.axes, off)

    async def is_gathered(self) -> None:
        await self._until(
            lambda line: not line.layout.axes, lambda line: _at_home(MoveKind.GATHER, line)
        )

    async def _until(self, is_so: Callable[[Line], bool], order: Callable[[Line], Move]) -> bool:
        """A monitor may order something else meanwhile; then this is given up."""
        for _ in range(_TRIES):
            line = self._line
            if is_so(line):
                await asyncio.sleep(_HEARD_S)
                return is_so(self._line)
            call = move_to_wire(order(line))
            try:
                await self._cluster.network.call(address_of(line.home), "move", call, 3.0)
            except UTupleError as error:
                self._cluster.world.trace("order lost", error)
            await asyncio.sleep(_TRY_S)
        return False


def _at_home(kind: MoveKind, line: Line, layout: Layout = NO_LAYOUT) -> Move:
    return Move(kind, line.section, line.epoch, line.home, layout=layout)
