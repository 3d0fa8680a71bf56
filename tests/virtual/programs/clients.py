"""Client programs: the whole SDK on the virtual network, doing what the plan says, telling the history.

A program that died comes back: it opens its named watches and devices again under their labels, and goes on
with what the plan has for it from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar
from uuid import UUID

from benchmarks.chaos.checker import Outcome
from tests.virtual.coverage import CAME_BACK, CANCELLED, FLEETING_COMMAND
from tests.virtual.plan import (
    LARGE_BYTES,
    ClientPlan,
    Commanding,
    Emission,
    Reading,
    Serving,
    Watching,
)
from tests.virtual.programs.cluster import Cluster, Process
from tests.virtual.world.loop import Life
from tests.virtual.world.network import MAX_MESSAGE_BYTES
from tests.virtual.world.transport import VirtualTransport
from utuple.client.arguments import Place, instant_us, template
from utuple.client.config import Config
from utuple.client.parts import put_together
from utuple.client.receiving.deliveries import Deliveries
from utuple.client.receiving.drops import Drop
from utuple.client.space import Space
from utuple.cluster.line import Line
from utuple.cluster.table import Table
from utuple.errors import Closed, NotRegistered, OutcomeUnknown, UTupleError
from utuple.model.key import key_of
from utuple.model.utuple import Exact, Family, UTuple
from utuple.runtime.clock import now_us

CONFIG = Config(
    timeout_s=20.0,
    attempt_s=5.0,
    window=8,
    window_bytes=1_500,
    look_again_every_s=15.0,
    refresh_every_s=2.0,
    confirm_s=2.0,
    page_rows=3,
    batch_bytes=MAX_MESSAGE_BYTES // 2,
    told_at_once=1,
)
_PAUSE_S = 1.0
D = TypeVar("D", bound=Deliveries)


def id_of(number: int) -> bytes:
    """What the history knows an event or command by: its data carries the number."""
    return number.to_bytes(16, "big")


class Client:
    def __init__(self, cluster: Cluster, plan: ClientPlan) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._history = cluster.world.history
        self._plan = plan
        self._dice = cluster.world.dice(plan.name)
        self._under_way: dict[int, tuple[UTuple, int]] = {}
        """Sent and not answered yet, with when."""
        self._fleeting: dict[str, Callable[[str, int], None]] = {}
        """Labels without a reader's name that are open, with how their end is told."""
        self._asked_us: dict[str, int] = {}
        """When a label was first to be opened: a life that died on the way may have registered it."""
        self._epochs: dict[str, int] = {}
        """Of the lines under which labels were last opened."""
        self.labels: dict[str, str] = {}
        """Of devices that are open, by address."""
        self.space: Space | None = None
        self.life: Life | None = None
        """Whose space it is."""
        self.process = cluster.add(plan.name, self._begin)
        cluster.when_died.append(self._died)

    # --- its lives -----------------------------------------------------------------------------------

    async def _begin(self, life: Life) -> None:
        transport = VirtualTransport(self._cluster.network)
        dice = self._world.dice(str(life))
        trust = self._cluster.network.trust
        owner = "" if trust is None else trust.identity(life).name
        managers = self._cluster.manager_addresses
        parts = put_together(managers, CONFIG, transport, dice, now_us, owner)
        self.space = space = Space(parts)
        self.life = life
        while True:
            try:
                await parts.lines.first_contact()
                break
            except UTupleError:
                await asyncio.sleep(_PAUSE_S)
        plan, tasks = self._plan, asyncio.TaskGroup()
        async with tasks:
            for watching in plan.watches:
                tasks.create_task(self._watch(space, watching, life))
            for serving in plan.devices:
                tasks.create_task(self._serve(space, serving, life))
            later: list[tuple[float, Callable[[], Awaitable[None]]]] = []
            later += [(e.at_s, lambda e=e: self.emit(space, e)) for e in plan.emissions]  # type: ignore[misc]
            later += [(c.at_s, lambda c=c: self.command(space, c)) for c in plan.commands]  # type: ignore[misc]
            later += [(r.at_s, lambda r=r: self.read(space, r)) for r in plan.reads]  # type: ignore[misc]
            later += [(at_s, lambda: self._set_back(space)) for at_s in plan.set_back_s]
            for at_s, act in later:
                if at_s >= self._world.now_s:
                    tasks.create_task(self._at(at_s, act))
            await asyncio.Event().wait()  # until it dies

    async def _at(self, at_s: float, act: Callable[[], Awaitable[None]]) -> None:
        await self._until(at_s)
        await act()

    async def _until(self, at_s: float) -> None:
        await asyncio.sleep(max(0.0, at_s - self._world.now_s))

    def _died(self, process: Process, life: Life) -> None:
        """What its application knew is gone: open calls may be registered, unnamed watches are over."""
        if process is not self.process:
            return
        now = self._world.now_us
        self.end_calls()
        for label, tell in self._fleeting.items():
            tell(label, now)
        self._fleeting.clear()
        self.labels.clear()

    def end_calls(self) -> None:
        """Calls without an answer by now may be registered: the history hears so."""
        for utuple, began_us in self._under_way.values():
            self._record(utuple, began_us, Outcome.UNKNOWN)
        self._under_way.clear()

    async def _set_back(self, space: Space) -> None:
        """Its lines become older ones, as those of a program that slept."""
        lines = [line for name in self._cluster.servers for line in self._lines_of(name)]
        lines.sort(key=lambda line: line.epoch)
        kept = self._dice.randrange(len(lines) + 1)
        self._world.count("lines set back")
        self.set_back(space, lines[:kept])

    def set_back(self, space: Space, older: Sequence[Line]) -> None:
        """It knows only these of the lines it has heard. Newer ones it has not heard are left out: its
        watches would never be told of them."""
        known = list(space._parts.lines._table)
        heard = [line for line in older if not Table(known).hear(line)]
        space._parts.lines._table = Table([*self._cluster.first_table, *heard])

    def _lines_of(self, name: str) -> list[Any]:
        disk = self._cluster.processes[name].disk
        return disk.lines if disk is not None else []

    # --- events --------------------------------------------------------------------------------------

    async def emit(self, space: Space, emission: Emission) -> bool:
        numbered = [self._numbered(event) for event in emission.events]
        utuples = [self._event(event) for event in numbered]

        async def act() -> None:
            if emission.many:
                await space.emit_many(numbered)
            else:
                await space.emit(**numbered[0])

        outcome, _ = await self._send(space, utuples, act)
        return outcome is Outcome.OK

    def _numbered(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return {**event, "data": {**event["data"], "n": self._world.next_number()}}

    def _event(self, event: Mapping[str, Any]) -> UTuple:
        family = Family(event["subject"], event["type"])
        exact = Exact(event["address"], instant_us("time", event["time"]), event["position"])
        data = event["data"]
        return UTuple(id_of(data["n"]), family, exact, data, None, float(event["lifetime_s"]))

    async def _send(
        self, space: Space, utuples: list[UTuple], act: Callable[[], Awaitable[Any]]
    ) -> tuple[Outcome, Any]:
        """Send and, if the answer was lost, mostly again; the history hears of it either way."""
        began_us = self._world.now_us
        for utuple in utuples:
            self._under_way[int.from_bytes(utuple.id, "big")] = utuple, began_us
        outcome, value = await self._outcome(space, act)
        numbers = [int.from_bytes(utuple.id, "big") for utuple in utuples]
        self._world.trace(self._plan.name, "sent", numbers, outcome.name)
        for number, utuple in zip(numbers, utuples, strict=True):
            del self._under_way[number]
            handed = self._handed(value) if outcome is Outcome.OK else ()
            self._record(utuple, began_us, outcome, handed)
        return outcome, value

    async def _outcome(
        self, space: Space, act: Callable[[], Awaitable[Any]]
    ) -> tuple[Outcome, Any]:
        try:
            return Outcome.OK, await act()
        except NotRegistered:
            return Outcome.NOT, None
        except OutcomeUnknown as error:
            unknown = error
        except UTupleError as error:
            self._world.bug(f"{self._plan.name} is told", error)
            return Outcome.NOT, None
        while self._dice.random() < 0.8:
            try:
                return Outcome.OK, await space.retry(unknown)
            except OutcomeUnknown as error:
                unknown = error
            except UTupleError as error:
                self._world.bug(f"{self._plan.name} is told at a retry", error)
                break
        return Outcome.UNKNOWN, None

    def _record(
        self, utuple: UTuple, began_us: int, outcome: Outcome, handed: tuple[str, ...] = ()
    ) -> None:
        now = self._world.now_us
        if isinstance(utuple.metadata, Exact):
            self._history.emitted(utuple, began_us, now, outcome)
        else:
            self._history.commanded(utuple, began_us, now, outcome, handed)

    async def read(self, space: Space, reading: Reading, *, complete: bool = False) -> bool:
        began_us, newest_first = self._world.now_us, reading.newest_first
        found: list[bytes] = []
        keys: list[tuple[datetime, UUID]] = []
        asked: dict[str, Any] = reading.family._asdict()
        try:
            async for event in space.read(**asked, newest_first=newest_first):
                found.append(id_of(event.data["n"]))
                keys.append((event.time, event.id))
        except (NotRegistered, OutcomeUnknown) as error:
            self._world.trace(f"reading {reading.family.subject} failed: {error}")
            return False
        if newest_first and keys != sorted(keys, reverse=True):
            self._world.bug(f"{self._plan.name} reads", ValueError("not the newest first"))
        self._history.read_back(reading.family, found, began_us, complete=complete)
        return True

    # --- watches -------------------------------------------------------------------------------------

    async def _watch(self, space: Space, plan: Watching, life: Life) -> None:
        for number, (open_s, close_s) in enumerate(plan.spans):
            label = plan.label if plan.named else f"{plan.label}/{life.number}.{number}"
            if self._world.now_s >= close_s:
                self._history.watch_closed(label, self._world.now_us)  # it died before it could
                continue
            await self._until(open_s)
            asked_us = self._asked_us.setdefault(label, self._world.now_us)
            watch = await self._opened(space, lambda: self._new_watch(space, plan))
            self._world.trace(self._plan.name, "watches", label)
            self._note_epoch(label, plan.family)
            self._history.watch_opened(label, watch._utuple, asked_us, self._world.now_us)
            if not plan.named:
                self._fleeting[label] = self._history.watch_closed
            taking = asyncio.create_task(self._take(watch, label, plan.acks))
            await self._until(close_s)
            self._world.trace(self._plan.name, "watches no more", label)
            self._history.watch_closed(label, self._world.now_us)
            self._fleeting.pop(label, None)
            if not plan.named and self._cluster.is_moving(key_of(*plan.family)):
                self._world.count(CANCELLED)
            await watch.close()
            await taking

    def _note_epoch(self, label: str, family: Family) -> None:
        epoch = self._cluster.epoch_of(key_of(*family))
        if self._epochs.get(label, epoch) < epoch:
            self._world.count(CAME_BACK)
        self._epochs[label] = epoch

    def _new_watch(self, space: Space, plan: Watching) -> Deliveries:
        return space.watch(
            subject=plan.family.subject,
            type=plan.family.type,
            where=plan.where,
            reader=plan.label if plan.named else None,
            absent=plan.absent,
            on_dropped=lambda drop: self._dropped(plan.label, drop),
            **plan.place,
        )

    def _dropped(self, label: str, drop: Drop) -> None:
        self._world.trace(label, "is told", drop.count, "dropped by", drop.policy)
        self._history.declared(label, (drop.server, drop.since.isoformat()), drop.count)

    async def _opened(self, space: Space, new: Callable[[], D]) -> D:
        while True:
            deliveries = new()
            try:
                return await deliveries.open()
            except OutcomeUnknown as error:
                unknown = error
                try:
                    while self._dice.random() < 0.8:
                        try:
                            await space.retry(unknown)
                            return deliveries
                        except OutcomeUnknown as error:
                            unknown = error
                except NotRegistered:
                    pass
            except NotRegistered:
                pass
            await asyncio.sleep(_PAUSE_S)

    async def _take(self, watch: Deliveries, label: str, acks: float) -> None:
        try:
            async for event in watch:
                self._world.trace(label, "gets", event.data["n"])
                self._check_held(watch, label)
                self._history.delivered(label, id_of(event.data["n"]), self._world.now_us)
                if self._dice.random() < 0.2:
                    await asyncio.sleep(self._dice.random())  # an application at work
                if self._dice.random() < acks:
                    await event.ack()
        except Closed as error:
            if not watch._closed:
                self._world.bug(f"{label} was ended", error)
        except UTupleError as error:
            self._world.bug(f"{label} failed", error)

    def _check_held(self, watch: Deliveries, label: str) -> None:
        """Every link holds a window and a half, and the last delivery of each may go beyond. What members that are off
        were read for has a window of its own; and links may be left whose deliveries are not."""
        formal = watch._formal
        most = (len(formal._members) + 1) * (CONFIG.window_bytes * 3 // 2 + 2 * LARGE_BYTES)
        if formal._queued_bytes > most:
            self._world.bug(f"{label} holds {formal._queued_bytes} bytes; {most} are its windows")

    # --- devices and commands ------------------------------------------------------------------------

    async def _serve(self, space: Space, plan: Serving, life: Life) -> None:
        for number, (open_s, close_s) in enumerate(plan.spans):
            await self._until(open_s)
            again = "" if plan.named else f"/{life.number}.{number}"
            label, address = plan.label + again, plan.address + again
            asked_us = self._world.now_us
            device = await self._opened(
                space,
                lambda address=address: space.serve(  # type: ignore[misc]
                    subject=plan.family.subject,
                    type=plan.family.type,
                    address=address,
                    position=plan.position,
                    where=plan.where,
                    reader=plan.label if plan.named else None,
                ),
            )
            self._world.trace(self._plan.name, "serves", label)
            self._history.served(label, device._utuple, asked_us, self._world.now_us)
            self.labels[address] = label
            if not plan.named:
                self._fleeting[label] = self._history.served_no_more
            taking = asyncio.create_task(self._take_commands(device, label))
            await self._until(close_s)
            self.labels.pop(address, None)
            self._fleeting.pop(label, None)
            self._history.served_no_more(label, self._world.now_us)
            await device.close()
            await taking

    async def _take_commands(self, device: Deliveries, label: str) -> None:
        try:
            async for command in device:
                self._world.trace(label, "is commanded", command.data["n"])
                self._history.command_delivered(label, id_of(command.data["n"]), self._world.now_us)
        except Closed as error:
            if not device._closed:
                self._world.bug(f"{label} was ended", error)
        except UTupleError as error:
            self._world.bug(f"{label} failed", error)

    async def command(self, space: Space, plan: Commanding) -> bool:
        number = self._world.next_number()
        data = {**plan.data, "n": number}
        metadata = template(Place(**plan.place))
        utuple = UTuple(id_of(number), plan.family, metadata, data, None, plan.lifetime_s)

        async def act() -> Any:
            return await space.command(
                subject=plan.family.subject,
                type=plan.family.type,
                data=data,
                lifetime_s=plan.lifetime_s,
                everywhere=not plan.place,
                **plan.place,
            )

        outcome, receipt = await self._send(space, [utuple], act)
        is_simple = isinstance(plan.place.get("address"), str)
        if not plan.lifetime_s and not is_simple and self._handed(receipt):
            self._world.count(FLEETING_COMMAND)
        return outcome is Outcome.OK

    def _handed(self, receipt: Any) -> tuple[str, ...]:
        devices = getattr(receipt, "devices", ())
        labels = (client.labels.items() for client in self._world.clients)
        known = dict(chain.from_iterable(labels))
        return tuple(known[d.address] for d in devices if d.handed_over and d.address in known)
